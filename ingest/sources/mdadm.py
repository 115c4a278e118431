"""Source `mdadm`: which drives an md array is made of, and what happens to them.

Reads `mdadm --detail --export`, plain `mdadm --detail` and `/proc/mdstat`, each in `HOST/FILE` under a line `TS seconds`
(docs/sources/mdadm.md). A drive is known by its device, so drive_id is an alias. A RAID group is the array's UUID; `/proc/mdstat`
names none, so that alone it gives `HOST/mdN`, by the name that the array's members had first. A look lists an array whole: who is
missing from the next one has left it. Text that is cut off, or has a kernel message within it, never means that a drive has left.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from ingest.contract.errors import UnreadableFile
from ingest.contract.findings import some_of
from ingest.reading.batches import Rejection, batch_of
from ingest.reading.devices import is_cut_off, is_no_drive
from ingest.reading.files import FileResult, SourceFile, named
from ingest.reading.hosts import Look, drive_device, host_of, looks, read_text

if TYPE_CHECKING:
    from ingest.raw.landing import Landing

EXPECTED = "HOST/mdstat*, HOST/mdadm*: what `cat /proc/mdstat` and `mdadm --detail [--export]` print, below a line `TS seconds`"
recognise = named("md arrays", "(mdstat|mdadm).*")

_KEY_AND_VALUE = re.compile(r"MD_(?!DEVICE_)\w+=.*|MD_DEVICE_\S+_(ROLE|DEV)=\S*\s*")
_EXPORTED = re.compile(r"MD_DEVICE_(.+)_(ROLE|DEV)")
MOST_SHOWN = 3
_MDSTAT = re.compile(r"(md\S*)\s+:\s+([a-z][a-z-]*(?:\s+\([a-z-]+\))*)\s+(?:(-?[A-Za-z][\w-]*)\s+)?(.*)")
_WORD = re.compile(r"-?[A-Za-z][\w-]*")
_MDSTAT_MEMBER = re.compile(r"([^\s\[]+)\[(\d{1,9})\]((?:\([A-Z]\))*)")
_MDSTAT_WIDTH = re.compile(r"\[(\d{1,4})/(\d{1,4})\]\s+\[([U_]+)\]")
_MDSTAT_SIZE = re.compile(r"\s+(\d{1,18}) blocks\b(?: super external:(?P<external>[^/\s]\S*))?")
_DETAIL_SIZE = re.compile(r"(\d{1,18}) \(.*\)")
_COPIES = re.compile(r"\b(\d{1,4}) (?:near|far|offset)-copies|\b(?:near|far|offset)=(\d{1,4})")
_MDSTAT_SYNC = re.compile(r"\b(recovery|resync|check|repair|reshape)\s*=\s*([\d.]+%|DELAYED|PENDING)")
# drivetail collect adds it: the kernel does not say
_MDSTAT_UUID = re.compile(r"\s+uuid (\S+)\s*")
_DETAIL_MEMBER = re.compile(r"\s+(\d+|-)\s+\d+\s+\d+\s+(\d+|-)\s+(.*?)\s*(/dev/\S+)?\s*")
_DETAIL_STATE = re.compile(r"[A-Za-z, -]*")
_DEVICE = re.compile(r"/dev/[^\s\[\]]+")
# a line that only a member of an array can have, in any of the three forms
_LIKE_A_MEMBER = re.compile(r"MD_DEVICE_\S*=|\w\[\d{1,9}\](?:\([A-Z]\))*(?:\s|$)|^\s+(?:\d+|-)\s+\d+\s+\d+\s.*/dev/")
# a member that is an array, or a partition of one
_MD = re.compile(r"(md(?:_d)?\d+|md_[^/]+|md/.+?)(?:p\d+)?")
_LEAST_PEERS = 3
_SYNC_EVENTS = {"recovery": "rebuild", "reshape": "rebuild", "resync": "scrub", "check": "scrub", "repair": "scrub"}
SYNC_OF = {
    **{sync: sync for sync in _SYNC_EVENTS},
    "recovering": "recovery", "resyncing": "resync", "checking": "check", "repairing": "repair", "reshaping": "reshape",
}  # fmt: skip
"""Work of an array beside reads and writes, by the words for it."""

# Words of the kernel and of mdadm for what an array is doing: whether its list of members is whole. Not of one that nobody has started:
# all it has are listed as spares. `broken`: too few are left, and who is not listed has left.
_STATES = {
    "active": True, "active-idle": True, "clean": True, "write-pending": True, "suspended": True, "read-only": True, "readonly": True,
    "auto-read-only": True, "read-auto": True, "degraded": True, "FAILED": True, "broken": True, "recovering": True, "resyncing": True,
    "checking": True, "repairing": True, "reshaping": True, "DELAYED": True, "PENDING": True, "REMOTE": True,
    "inactive": False, "clear": False, "Not Started": False,
}  # fmt: skip
IDLE_STATES = sorted(_STATES.keys() - SYNC_OF.keys())
"""Words for an array that does nothing beside its work."""
# Levels, and how many members' room is no array's data: null where each has a copy. Synology's raidF1 is a raid5 that wears unevenly.
_LEVELS = {"linear": 0, "raid0": 0, "raid1": None, "raid4": 1, "raid5": 1, "raidF1": 1, "raid6": 2, "raid10": 0, "multipath": None}
# mdstat shows how many members of these work
_REDUNDANT = ("raid1", "raid4", "raid5", "raidF1", "raid6", "raid10")
# the kernel's numbers for layouts whose parity stays where it is (drivers/md/raid5.h): first slots, last slots, Q on the last.
_FIXED_LAYOUTS = {4: "parity-first", 5: "parity-last", 16: "left-asymmetric-6", 17: "right-asymmetric-6", 18: "left-symmetric-6",
                  19: "right-symmetric-6", 20: "parity-first-6"}  # fmt: skip


@dataclass
class Member:
    """A device of an array: slot null where it has none, or none is given; `is_failed` members belong to it no more.

    number: what the array calls it, which metadata 1.x keeps while it is a member.
    """

    device: str
    line: int
    slot: int | None
    is_failed: bool = False
    is_spare: bool = False
    number: int | None = None


@dataclass(eq=False)
class Identity:
    """An array under whatever name: its UUID, else the name that its members had first."""

    name: str
    uuid: str | None


@dataclass(eq=False)
class Array:
    """One look at one array. `layout` is null where the text has none; `sync` is what it is doing beside its work.

    `working`: a `U` for every slot whose drive works, else `_`, as mdstat has it; `working_count` a detail's number of
    them, spares too, and `listed` how many of them it lists. `blocks` of 1 KiB the array has, or `used` of each member. `is_torn`: not
    whole. `unknown`: the words of its state and level that are in no table. `is_told`: who has come and gone since the look before.
    """

    line: int
    name: str
    uuid: str | None = None
    level: str | None = None
    layout: str | None = None
    width: int | None = None
    sync: str | None = None
    members: list[Member] = field(default_factory=list)
    is_of_mdstat: bool = False
    is_of_detail: bool = False
    working_count: int | None = None
    listed: int = 0
    is_active: bool = True
    blocks: int | None = None
    used: int | None = None
    copies: int = 1
    working: str | None = None
    is_torn: bool = False
    unknown: list[str] = field(default_factory=list)
    is_told: bool = True
    identity: Identity = field(default_factory=lambda: Identity("", None))

    def role(self, member: Member) -> str:
        """Role of a member; under rotating parity every one holds data."""
        return "spare" if member.is_spare else self.role_of(member.slot)

    def role_of(self, slot: int | None) -> str:
        """Role of the member in a slot."""
        if slot is None:
            return "data"
        width = self.width or 0
        last = width - 1
        if self.level == "raid4":
            return "parity_p" if slot == last else "data"
        layout = self.layout or ""
        if self.level == "raid5" and layout in ("parity-first", "parity-last"):
            return "parity_p" if slot == (0 if layout == "parity-first" else last) else "data"
        if self.level == "raid6":
            slots = {"parity-first": (0, 1), "parity-last": (last - 1, last), "parity-first-6": (0, last)}
            p, q = slots.get(layout, (-1, last if layout.endswith("-6") else -1))
            return {p: "parity_p", q: "parity_q"}.get(slot, "data")
        return "data"

    @property
    def is_running(self) -> bool:
        """Whether its members' places are known: those of an array that was not started are all listed as spares, without a level."""
        return self.is_active or self.level is not None

    @property
    def devices(self) -> frozenset[str]:
        """Its members, partitions as such; not those that failed."""
        return frozenset(member.device for member in self.members if not member.is_failed)

    @property
    def places(self) -> list[tuple[str, int | None]]:
        """Its members in the order of the text, each with its slot."""
        return [(member.device, member.slot) for member in self.members]

    @property
    def member_blocks(self) -> int | None:
        """Blocks of 1 KiB that it has of each member; null where the text does not say."""
        if self.used is not None or self.blocks is None or self.level not in _LEVELS:
            return self.used
        no_data = _LEVELS[self.level]
        width = self.width or max((member.slot + 1 for member in self.members if member.slot is not None), default=len(self.members))
        return self.blocks if no_data is None else self.blocks * self.copies // max(width - no_data, 1)

    @property
    def shown_level(self) -> str | None:
        """The RAID level, and that no drive is only parity where that is so."""
        rotates = self.level in ("raid5", "raidF1", "raid6") and not any(self.role(member).startswith("parity") for member in self.members)
        return f"{self.level}, rotating parity" if rotates else self.level


@dataclass
class Said:
    """Findings of a file that its notes name. Instants: of the first look that has them; numbers: lines."""

    stopped: dict[str, datetime] = field(default_factory=dict)
    renamed: dict[str, datetime] = field(default_factory=dict)
    moved: dict[str, datetime] = field(default_factory=dict)
    unknown: dict[str, list[int]] = field(default_factory=dict)

    def notes(self) -> Iterator[str]:
        for name, at in self.stopped.items():
            yield f"{name} is inactive from {at} UTC on: its members stay as they were"
        for found, what in (
            (self.renamed, "the members are the same, so the groups go on as they were called"),
            (self.moved, "letters have changed, or this is another array: nobody counts as removed or added"),
        ):
            if found:
                shown = [f"{each} from {at} UTC on" for each, at in found.items()]
                more = f", and {len(shown) - MOST_SHOWN} more" if len(shown) > MOST_SHOWN else ""
                yield f"{', '.join(shown[:MOST_SHOWN])}{more}: {what}"
        for word, lines in self.unknown.items():
            yield f"{word} is not known ({len(lines)} times, first in line {lines[0]}): no member of these arrays counts as gone"


def land(files: list[SourceFile], landing: Landing) -> None:
    """Read every look at a host's arrays, compare each with the one before it, and stage members and events.

    Counts are in records: members of an array and events, with what was turned away.
    """
    read = landing.read_each(files, _looks_at_arrays)
    _name_by_neighbours([(folder, look.at, array) for _, (folder, _, seen, _) in read for look, arrays in seen for array in arrays])
    # mdstat knows the layout and the size, an export does not: of an array that both list it has the word
    in_mdstat = {
        (host, array.identity.uuid)
        for _, (_, host, seen, _) in read for _, arrays in seen for array in arrays if array.is_of_mdstat and array.identity.uuid
    }  # fmt: skip
    shared: dict[str, Shared] = {}
    first: dict[str, FileResult] = {}
    for result, (_, host, seen, rejected) in read:
        of_host = shared.setdefault(host, Shared())
        listed = [
            (look, [each for each in arrays if each.is_of_mdstat or (host, each.identity.uuid) not in in_mdstat]) for look, arrays in seen
        ]
        opened = [(look, _opened(host, arrays, of_host)) for look, arrays in listed]
        with landing.reading(result):
            landing.take(batch_of("drives", _found(host, opened, of_host), rejected), result)
            landing.take(batch_of("drive_events", _events(host, opened, of_host.within)), result)
            first.setdefault(host, result)
    for host, result in first.items():
        result.notes += shared[host].notes()


def _name_by_neighbours(every: list[tuple[tuple[str, ...], datetime, Array]]) -> None:
    """Give an array without a UUID that of the one with the same members that a text of the same folder names, nearest in time."""
    named: dict[tuple[tuple[str, ...], frozenset[str]], list[tuple[datetime, str]]] = {}
    for folder, at, array in every:
        if array.identity.uuid and array.devices:
            named.setdefault((folder, array.devices), []).append((at, array.identity.uuid))
    for looks_at_it in named.values():
        looks_at_it.sort()
    found: dict[Identity, list[tuple[timedelta, str]]] = {}
    for folder, at, array in every:
        if not array.identity.uuid and (looks_at_it := named.get((folder, array.devices), [])):
            next_place = bisect_left(looks_at_it, (at, ""))
            around = looks_at_it[max(next_place - 1, 0) : next_place + 1]
            found.setdefault(array.identity, []).extend((abs(at - when), uuid) for when, uuid in around)
    for identity, neighbours in found.items():
        least, _ = min(neighbours)
        nearest = {uuid for distance, uuid in neighbours if distance == least}
        if len(nearest) == 1:
            (identity.uuid,) = nearest


def _looks_at_arrays(file: SourceFile, result: FileResult) -> tuple[tuple[str, ...], str, list[tuple[Look, list[Array]]], list[Rejection]]:
    """The folder and the host of a file, its looks, and the lines that are rejected."""
    text = read_text(file)
    rejected: list[Rejection] = []
    said = Said()
    seen = list(_seen(text, rejected, said))
    result.notes += said.notes()
    if not any(arrays for _, arrays in seen) and not rejected and not said.stopped and "Personalities" not in text:
        raise UnreadableFile("no md array is in it; expected what `mdadm --detail [--export]` or `cat /proc/mdstat` prints")
    return tuple(file.parts[:-1]), host_of(file), seen, rejected


def _seen(text: str, rejected: list[Rejection], said: Said) -> Iterator[tuple[Look, list[Array]]]:
    """The looks of a text by their time, with what stands of the arrays: what a look does not give in full stays as in the look before.

    Only an mdstat that has come to its end says that an array is gone; so do its drives when they are active in another. An array that is
    listed and does not run (`inactive`) keeps the members it had.
    """
    cut = 0 if text.endswith(("\n", "\r")) else len(text.splitlines())
    known: dict[Identity, Array] = {}
    for look in sorted(looks(text), key=lambda one: one.at):
        before = len(rejected)
        listed = [array for array in _listed(look, rejected, cut) if not array.is_torn]
        for array in listed:
            if not array.is_running:
                said.stopped.setdefault(array.name, look.at)
            for word in array.unknown:
                said.unknown.setdefault(word, []).append(array.line)
        idle = {member.device for array in listed if not array.is_running for member in array.members}
        running = {(array.is_of_mdstat, array.name if array.is_of_mdstat else array.uuid): array for array in listed if array.is_running}
        whole = _identified(list(running.values()), known, look.at, said)
        is_all = len(rejected) == before and any(line.startswith("unused devices") for _, line in look.lines)
        taken = {member.device for array in whole.values() for member in array.members}
        stay = {
            identity: whole.get(identity, array)
            for identity, array in known.items()
            if identity in whole
            or any(member.device in idle for member in array.members)
            or not (is_all or any(member.device in taken for member in array.members if not member.is_failed and not member.is_spare))
        }
        known = stay | whole
        yield look, list(known.values())


def _identified(arrays: list[Array], known: dict[Identity, Array], at: datetime, said: Said) -> dict[Identity, Array]:
    """Which of the known arrays each array of a look is, most alike first; the others are new."""
    by_name = {(array.is_of_mdstat, array.name): array for array in arrays}
    pairs = []
    for was in known.values():
        twin = by_name.get((was.is_of_mdstat, was.name))  # as a rule nothing has changed
        likely = [twin] if twin is not None and twin.uuid == was.identity.uuid and twin.places == was.places else arrays
        pairs += [(kin, was, array) for array in likely if (kin := _kinship(was, array)) is not None]
    found: dict[Identity, Array] = {}
    left = list(arrays)
    for kin, was, array in sorted(pairs, key=lambda pair: pair[0], reverse=True):
        identity = was.identity
        if identity in found or array not in left:
            continue
        left.remove(array)
        same, moved = _shared(was, array)
        identity.uuid = identity.uuid or array.uuid
        array.is_told = kin[0] > 0 and not moved and (same > 0 or not was.members)
        if not array.is_told:
            said.moved.setdefault(f"{array.name} has other drives or slots", at)
        if array.name != was.name:
            said.renamed.setdefault(f"{was.name} is {array.name}", at)
        array.blocks, array.used = array.blocks or was.blocks, array.used or was.used
        found[identity] = _kept(array, was) if array.unknown else array
        found[identity].identity = identity
    names = {identity.name for identity, was in known.items() if was.is_of_mdstat}
    for array in left:
        name, count = array.name, 1
        while array.is_of_mdstat and name in names:  # another array bore it first
            count += 1
            name = f"{array.name}-{count}"
        array.identity = Identity(name, array.uuid)
        found[array.identity] = array
    return {array.identity: array for array in sorted(found.values(), key=lambda each: each.line)}


def _kinship(was: Array, array: Array) -> tuple[int, int, bool] | None:
    """How alike an array and one of the look before are; null where they are two. Not by name where UUID or members say otherwise."""
    if was.is_of_mdstat != array.is_of_mdstat:
        return None
    if was.identity.uuid and array.uuid:
        return (3, 0, False) if was.identity.uuid == array.uuid else None
    same, moved = _shared(was, array)
    is_named = was.name == array.name
    is_alike = was.level == array.level and (was.member_blocks is None or array.blocks is None or was.blocks == array.blocks)
    if same and not moved and (is_named or (is_alike and 2 * same >= len(was.devices))):
        return 2, same, is_named
    if is_named:
        return 1, same, True
    slots = [sorted(each.slot for each in one.members if each.slot is not None and not each.is_failed) for one in (was, array)]
    return (0, same, False) if is_alike and array.blocks and slots[0] == slots[1] else None


def _shared(was: Array, array: Array) -> tuple[int, int]:
    """How many devices two looks have in common, and how many of these are in another slot, which no member of a running array takes."""
    before = {member.device: member for member in was.members}
    pairs = [(before[member.device], member) for member in array.members if member.device in before]
    moved = sum(
        old.number != new.number and None not in (old.slot, new.slot) and old.slot != new.slot and not (old.is_failed or new.is_failed)
        for old, new in pairs
    )
    return len(pairs) - moved, moved


def _kept(array: Array, was: Array) -> Array:
    """An array whose state or level is not understood: as it was, with those who have failed or are new."""
    now = {member.device: member for member in array.members}
    members = [replace(old, is_failed=old.is_failed or (old.device in now and now[old.device].is_failed)) for old in was.members]
    had = {member.device for member in was.members}
    members += [member for member in array.members if member.device not in had]
    return replace(was, line=array.line, name=array.name, sync=array.sync, members=members, is_told=array.is_told, unknown=array.unknown)


def arrays_of(look: Look, rejected: list[Rejection]) -> Iterator[Array]:
    """The arrays of a look that run. See _listed()."""
    return (array for array in _listed(look, rejected) if array.is_running)


def _listed(look: Look, rejected: list[Rejection], cut: int = 0) -> Iterator[Array]:
    """The arrays that a look lists, in whichever of the three forms; what is cut off goes to `rejected`.

    cut: the line that the text ends within, 0 where it ends with a whole one.
    """
    array: Array | None = None
    devices: dict[str, tuple[int, str]] = {}
    for line, text in [*look.lines, (0, "MD_LEVEL=")]:
        begins = _begun(line, text, rejected)
        # /proc/mdstat may stand below what mdadm says
        ends = begins is not None or text.startswith("Personalities")
        if (
            not ends
            and (array is None or array.is_of_mdstat)
            and (_LIKE_A_MEMBER.search(text) or (_MDSTAT_SIZE.match(text) and (array is None or array.blocks is not None)))
        ):
            rejected.append((line, "of an array, and no whole line that begins it; is that cut off?", "line", text))
            ends = True  # what follows is not the one's above
        if ends:
            if array is not None and _is_whole(array, devices, rejected):
                yield array
            array, devices = begins, {}
        elif array is not None:
            _read(array, line, text, devices, rejected)
        if array is not None and line and line == cut and (begins or not array.is_of_mdstat or "uuid" in text):
            _tear(array, rejected, line, "the text ends within this line; is it cut off?", "line", text)


def _tear(array: Array, rejected: list[Rejection], line: int, reason: str, column: str, value: str | None) -> None:
    """Turn away what is not whole of an array, which then stays as the look before had it."""
    array.is_torn = True
    rejected.append((line, reason, column, value))


def _begun(line: int, text: str, rejected: list[Rejection]) -> Array | None:
    if text.startswith("MD_LEVEL="):
        return Array(line, "", level=text.partition("=")[2].strip() or None)
    if text.startswith("/dev/md") and text.rstrip().endswith(":"):
        return Array(line, text.rstrip()[5:-1], is_of_detail=True)
    match = _MDSTAT.fullmatch(text)
    if match is None:
        return None
    array = Array(line, match[1], level=match[3], is_of_mdstat=True)
    _take_state(array, re.findall(r"[a-z-]+", match[2]))
    texts = match[4].split()
    if array.is_active and not any(_MDSTAT_MEMBER.match(text) for text in texts):
        _tear(array, rejected, line, "an array without a member; is the line cut off, or are its drives gone?", "members", array.name)
        return array
    for text in texts:
        member = _MDSTAT_MEMBER.fullmatch(text)
        if member is None:
            _tear(array, rejected, line, f"a member of {array.name} that is not whole; is the line cut off?", "member", text)
        elif "(J)" not in member[3]:  # a journal holds no share of the data
            # a drive that is to take the place of another holds none until it has
            is_spare = "(S)" in member[3] or "(R)" in member[3] or not array.is_active
            number = int(member[2])
            array.members.append(Member(member[1], line, None if is_spare else number, "(F)" in member[3], is_spare, number))
    return array


def _take_state(array: Array, words: list[str]) -> None:
    array.is_active = all(_STATES.get(word, True) for word in words)
    array.unknown += [f"the state `{word}`" for word in words if word not in _STATES]


def _read(array: Array, line: int, text: str, devices: dict[str, tuple[int, str]], rejected: list[Rejection]) -> None:
    """One line of an array: KEY=value of an export, `Key : value` or a member of a detail, what follows in mdstat."""
    if not array.is_of_mdstat and not array.is_of_detail:
        if text.strip() and not _KEY_AND_VALUE.fullmatch(text):
            _tear(array, rejected, line, "no KEY=value of an array; is it cut off, or another text within it?", "line", text)
            return
        key, _, value = text.partition("=")
        match = _EXPORTED.fullmatch(key)
        if match:
            devices[key] = (line, value)
        elif key == "MD_UUID":
            _name(array, line, value, rejected)
        elif key == "MD_DEVICES":
            array.width = int(value) if value.isdecimal() else None
        elif key in ("MD_DEVNAME", "MD_NAME"):
            array.name = array.name or value
        return
    if array.is_of_mdstat:
        if (size := _MDSTAT_SIZE.match(text)) is not None:
            array.blocks = int(size[1])
            if size["external"]:  # only holds arrays, which are listed too
                array.level = "container"
        _count_copies(array, text)
        if (width := _MDSTAT_WIDTH.search(text)) is not None:
            array.width, array.working = int(width[1]), width[3]
        if (uuid := _MDSTAT_UUID.fullmatch(text)) is not None:
            _name(array, line, uuid[1], rejected)
        if (algorithm := re.search(r"algorithm (\d+) \[", text)) is not None:
            array.layout = _FIXED_LAYOUTS.get(int(algorithm[1]), "rotating")
        if (sync := _MDSTAT_SYNC.search(text)) is not None and sync[2] not in ("DELAYED", "PENDING"):
            array.sync = sync[1]
        return
    match = _DETAIL_MEMBER.fullmatch(text)
    if match:
        _take_listed(array, line, match, rejected)
        return
    key, found, value = text.partition(" : ")
    if not found:
        return
    key, value = key.strip(), value.strip()
    if key == "UUID":
        _name(array, line, value, rejected)
    elif key == "Container GUID":
        _name(array, line, value.split()[0] + "/" + array.name if value else "", rejected)
    elif key == "Raid Level" and array.is_active:
        array.level = value
    elif key == "Layout":
        array.layout = value
        _count_copies(array, value)
    elif key in ("Array Size", "Used Dev Size") and (size := _DETAIL_SIZE.fullmatch(value)) is not None:
        array.blocks, array.used = (int(size[1]), array.used) if key == "Array Size" else (array.blocks, int(size[1]))
    elif key == "Raid Devices":
        array.width = int(value) if value.isdecimal() else None
    elif key == "Working Devices":
        if array.working_count is not None or not value.isdecimal():
            _tear(array, rejected, line, "not the one number of its working devices; is it cut off?", key, value)
        array.working_count = int(value) if value.isdecimal() else None
    elif key == "State":
        words = [word.strip() for word in re.split(r"[,()]", value) if word.strip()]
        _take_state(array, words)
        array.level = array.level if array.is_active else None  # mdadm makes one up
        array.sync = next((SYNC_OF[word] for word in words if word in SYNC_OF), None)


def _count_copies(array: Array, text: str) -> None:
    for near, other in _COPIES.findall(text):
        array.copies *= max(int(near or other), 1)


def _name(array: Array, line: int, uuid: str, rejected: list[Rejection]) -> None:
    """The UUID of an array; with two of them it is not known which lines belong to which."""
    if array.uuid is not None or not re.fullmatch(r"[0-9A-Fa-f]{8}(:[0-9A-Fa-f]{8}){3,}(/\S*)?", uuid):
        _tear(array, rejected, line, "not the one UUID of the array; is a line above it cut off?", "UUID", uuid)
    array.uuid = array.uuid or uuid


def _take_listed(array: Array, line: int, match: re.Match[str], rejected: list[Rejection]) -> None:
    """A line of the table below a detail. A drive that failed may have lost its device's name."""
    states = match[3].split()
    is_failed = "faulty" in states
    if not _DETAIL_STATE.fullmatch(match[3]) or (match[4] and not _is_device(match[4])):
        _tear(array, rejected, line, "a member that is not whole; is the line cut off?", "member", match[0].strip())
        return
    if "removed" in states or (is_failed and not match[4]):
        return
    array.listed += not is_failed
    if not match[4]:
        _tear(array, rejected, line, "a member without its device; is the line cut off?", "member", match[0].strip())
    elif "journal" not in states:
        is_spare = match[2] == "-" or "spare" in states[:1] or "replacement" in states
        number = int(match[1]) if match[1].isdecimal() else None
        device = match[4].removeprefix("/dev/")
        array.members.append(Member(device, line, None if is_spare else int(match[2]), is_failed, is_spare, number))


def _is_device(path: str) -> bool:
    return _DEVICE.fullmatch(path) is not None and not is_cut_off(path.removeprefix("/dev/"))


def _take_exported(array: Array, devices: dict[str, tuple[int, str]], rejected: list[Rejection]) -> None:
    """The members of an export: their pairs of _ROLE and _DEV, whatever the version calls them."""
    for key, (line, value) in devices.items():
        of, _, what = key.rpartition("_")
        other = devices.get(f"{of}_{'DEV' if what == 'ROLE' else 'ROLE'}")
        if other is None:
            _tear(array, rejected, line, f"has no matching {'_DEV' if what == 'ROLE' else '_ROLE'}; the output is cut off", key, value)
        elif what == "DEV" and not _is_device(value):
            _tear(array, rejected, line, "no name of a device; is the line cut off?", key, value)
        elif what == "ROLE" and not value.isdecimal() and value != "spare":
            _tear(array, rejected, line, "neither a slot's number nor `spare`", key, value)
        elif what == "ROLE":
            slot = int(value) if value.isdecimal() else None
            array.members.append(Member(other[1].removeprefix("/dev/"), line, slot, is_spare=slot is None, number=slot))


def _count_listed(array: Array, rejected: list[Rejection]) -> None:
    """Members that are fewer or more than the working devices a detail counts: it is cut off, or a line of it is lost."""
    if array.is_torn or array.listed == array.working_count:
        return
    said = "nothing" if array.working_count is None else array.working_count
    reason = f"{array.listed} working devices are listed, `Working Devices` says {said}; is it cut off?"
    _tear(array, rejected, array.line, reason, "members", array.name)


def _count_members(array: Array, rejected: list[Rejection]) -> None:
    """Members that are fewer or more than mdstat says there are: its line is cut off."""
    placed = sum(not member.is_failed and not member.is_spare for member in array.members)
    if array.is_torn or not array.is_active:
        return
    if array.working is None:
        if array.level in _REDUNDANT:
            _tear(array, rejected, array.line, "no [n/m] below it; is it cut off?", "members", array.name)
    elif not array.working.count("U") <= placed <= len(array.working):
        reason = f"{placed} working members are listed, [{array.working}] has {array.working.count('U')}; is its line cut off?"
        _tear(array, rejected, array.line, reason, "members", array.name)


def _give_slots(array: Array, rejected: list[Rejection]) -> None:
    """Slots of mdstat's members: its number is that of the slot until a drive was replaced, which then gets one beyond the width.

    One such drive has the slot that is left. With several it is not known which has which: where one of those slots is for parity,
    they are turned away, else they hold data in no slot that is known.
    """
    width = array.width or 0
    placed = [member for member in array.members if not member.is_failed and not member.is_spare]
    late = [member for member in placed if width and member.slot is not None and member.slot >= width]
    left = sorted(set(range(width)) - {member.slot for member in placed})
    if array.working is not None and len(placed) == array.working.count("U"):
        left = [slot for slot in left if array.working[slot] == "U"]
    for member in late:
        number, member.slot = member.slot, left[0] if len(left) == 1 else None
        if member.slot is None and any(array.role_of(slot) != "data" for slot in left):
            reason = f"/proc/mdstat does not show its slot in {array.name}; ingest `mdadm --detail` of it, without mdstat"
            rejected.append((member.line, reason, "slot", f"{member.device}[{number}]"))
            array.members.remove(member)


def _is_whole(array: Array, devices: dict[str, tuple[int, str]], rejected: list[Rejection]) -> bool:
    """Whether an array whose last line was read has members that a look can be compared with; what is cut off goes to `rejected`."""
    _take_exported(array, devices, rejected)
    if array.level in ("container", "faulty"):
        return False
    if not array.is_running:
        return True
    is_level = array.level is not None and _WORD.fullmatch(array.level) is not None
    missing = "level" if not is_level else "UUID" if array.uuid is None and not array.is_of_mdstat else None
    if missing is not None:
        _tear(array, rejected, array.line, f"the array has no {missing}; the output is cut off", missing, array.name or None)
        return False
    array.unknown += [] if array.level in _LEVELS else [f"the level `{array.level}`"]
    if array.is_of_mdstat:
        _count_members(array, rejected)
        _give_slots(array, rejected)
    elif array.is_of_detail:
        _count_listed(array, rejected)
    return True


def _opened(host: str, arrays: list[Array], shared: Shared) -> list[Array]:
    """Arrays with the drives of a member that is an array itself in its place, where these are too few to be compared; else without it."""
    by_name = {array.name: array for array in arrays}
    found = []
    for array in arrays:
        members: list[Member] = []
        sizes = [array.member_blocks]
        for member in array.members:
            if (match := _MD.fullmatch(member.device)) is None:
                members.append(member)
                continue
            shared.nested.add(array.name)
            below = by_name.get(match[1])
            # as many as it is made for: neither a failure nor a spare makes it another array
            if below is not None and (below.width or sum(not each.is_spare for each in below.members)) < _LEAST_PEERS:
                drives = [each for each in below.members if not each.is_failed and not _MD.fullmatch(each.device)]
                sizes.append(below.member_blocks)
                shared.within[_group(host, below)] = _group(host, array)
                members += [
                    replace(each, slot=None, is_failed=member.is_failed, is_spare=member.is_spare or each.is_spare) for each in drives
                ]
        found.append(
            array
            if members == array.members
            else replace(array, members=members, used=None if None in sizes else max(filter(None, sizes), default=0))
        )
    return found


def _group(host: str, array: Array) -> str:
    return array.identity.uuid or f"{host}/{array.identity.name}"


@dataclass
class Shared:
    """The drives of a host that are in several arrays, and one of them with its arrays."""

    devices: set[str] = field(default_factory=set)
    example: str = ""
    is_sized: bool = True
    nested: set[str] = field(default_factory=set)
    """Arrays that are made of arrays."""
    no_drives: set[str] = field(default_factory=set)
    """Members that are made of other devices, by caches, encryption or multipath."""
    within: dict[str, str] = field(default_factory=dict)
    """Groups of arrays whose drives count in another, and that one's."""

    def notes(self) -> list[str]:
        made = f"{some_of(sorted(self.nested))}: made of other arrays, whose drives count in these, or here where they are two at most"
        most = "most of its bytes" if self.is_sized else "most members: sizes of some are not known, which /proc/mdstat and `--detail` give"
        said = f"{len(self.devices)} drives are in several arrays, such as {self.example}: each counts in the one that has {most}"
        below = f"{some_of(sorted(self.no_drives))}: members of arrays, but no drives; say with `drivetail map` which drives these are on"
        return [said] * bool(self.devices) + [made] * bool(self.nested) + [below] * bool(self.no_drives)


def _found(host: str, seen: list[tuple[Look, list[Array]]], shared: Shared) -> Iterator[dict[str, Any]]:
    """Inventory records of every look that finds other members, or in other places, than the one before it."""
    before: list[dict[str, Any]] | None = None
    for look, arrays in sorted(seen, key=lambda one: one[0].at):
        records = list(_members(host, look, arrays, shared))
        members = [{name: value for name, value in record.items() if name not in ("valid_from", "collected_at")} for record in records]
        if not look.is_again and members != before:
            yield from records
        before = members


def largest(groups: dict[str, list[Array]]) -> str:
    """The name of the array that has most of a drive's bytes; where the size of one is not known of the widest, then the greatest.

    groups: by name, the array once for every member that the drive has in it.
    """
    sizes = {name: [array.member_blocks for array in places] for name, places in groups.items()}
    is_sized = all(None not in of for of in sizes.values())
    return max(groups, key=lambda name: (sum(size or 0 for size in sizes[name]) if is_sized else 0, len(groups[name][0].members), name))


def _members(host: str, look: Look, arrays: list[Array], shared: Shared) -> Iterator[dict[str, Any]]:
    """An inventory record per drive: of a drive that is in several arrays, of the one that has most of its bytes.

    A look that an earlier delivery brought has the names that it had there.
    """
    found: dict[str, dict[str, list[tuple[Array, Member]]]] = {}
    for array in arrays:
        group = array.uuid or f"{host}/{array.name}" if look.is_again else _group(host, array)
        for member in array.members:
            if not member.is_failed:
                found.setdefault(drive_device(member.device), {}).setdefault(group, []).append((array, member))
    for device, groups in found.items():
        if is_no_drive(device):
            shared.no_drives.add(f"{host}/{device}")
        if len(groups) > 1:
            shared.example = shared.example or f"{device} ({', '.join(sorted(groups))})"
            shared.devices.add(device)
            shared.is_sized &= all(array.member_blocks is not None for places in groups.values() for array, _ in places)
        group = largest({group: [array for array, _ in places] for group, places in groups.items()})
        array, member = max(groups[group], key=lambda place: not place[1].is_spare)
        yield {
            "drive_id": f"{host}/{device}",
            "raid_group_id": group,
            "role": array.role(member),
            "slot": None if member.slot is None else str(member.slot),
            "raid_level": array.shown_level,
            "host": host,
            "valid_from": look.at,
            "collected_at": look.at,
            "is_alias": True,
            "is_group_guessed": False,
            "array_name": array.name,
        }


def _state(host: str, arrays: list[Array]) -> tuple[dict[tuple[str, str], bool], dict[str, str]]:
    """At a look, by (group, device): whether it has failed; and what each array is doing."""
    named = [(_group(host, array), array) for array in arrays]
    devices = {(group, drive_device(member.device)): member.is_failed for group, array in named for member in array.members}
    return devices, {group: array.sync for group, array in named if array.sync}


def _events(host: str, seen: list[tuple[Look, list[Array]]], within: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Differences of one look from the one before; of an array's first look, what has failed and what is going on. within: see Shared."""
    before: dict[tuple[str, str], bool] = {}
    running: dict[tuple[str, str], tuple[datetime, list[str]]] = {}
    known: set[str] = set()
    for look, arrays in sorted(seen, key=lambda one: one[0].at):
        now, syncs = _state(host, arrays)
        untold = {_group(host, array) for array in arrays if not array.is_told}
        changes: list[tuple[str, str, str]] = []
        for (group, device), is_failed in now.items():
            was = before.get((group, device))
            if is_failed and not was:
                changes.append((group, device, "failed"))
            elif was is None and group in known - untold:
                changes.append((group, device, "added"))
        changes += [(group, device, "removed") for (group, device) in before if (group, device) not in now and group not in untold]
        if not look.is_again:
            for group, device, what in changes:
                yield _event(f"{host}/{device}", group, "other", look.at, None, f"md: {what}")
        for group, sync in syncs.items():
            if (group, sync) not in running:
                running[group, sync] = look.at, [device for (other, device), failed in now.items() if other == group and not failed]
        for group, sync in [key for key in running if syncs.get(key[0]) != key[1]]:
            begun, devices = running.pop((group, sync))
            for device in devices:
                yield sync_event(f"{host}/{device}", within.get(group, group), sync, begun, look.at)
        before = now
        known |= {group for group, _ in now}
    for (group, sync), (begun, devices) in running.items():
        # one look does not say how long; a later delivery's span of the same beginning takes its place
        seen_until = look.at if look.at > begun else None
        for device in devices:
            yield sync_event(f"{host}/{device}", within.get(group, group), sync, begun, seen_until, is_running=True)


def to_compare(found: list[Look]) -> list[Look]:
    """The looks that the next is compared with: the last, and while arrays are doing something all that found a change in what they do.

    With them a rebuild is one event with its whole span, however many deliveries report it.
    """
    doing = [{array.name: array.sync for array in arrays_of(look, []) if array.sync} for look in found]
    first = len(found) - 1
    while first > 0 and doing[first] and doing[first - 1]:
        first -= 1
    last = len(found) - 1
    return [found[at] for at in range(max(first, 0), len(found)) if at in (first, last) or doing[at] != doing[at - 1]]


def sync_event(drive: str, group: str, sync: str, at: datetime, ended_at: datetime | None, *, is_running: bool = False) -> dict[str, Any]:
    """The record of drive_events of a drive whose array does `sync` (a value of SYNC_OF) beside its work.

    is_running: that the delivery ends with it; ended_at is then when it was last seen, null where that is `at`.
    """
    return _event(drive, group, _SYNC_EVENTS[sync], at, ended_at, f"md: {sync}{', still running' if is_running else ''}")


def _event(drive: str, group: str, kind: str, at: datetime, ended_at: datetime | None, detail: str) -> dict[str, Any]:
    return {
        "occurred_at": at,
        "drive_id": drive,
        "event_type": kind,
        "raid_group_id": group,
        "ended_at": ended_at,
        "detail": detail,
        "collected_at": ended_at or at,
        "is_alias": True,
    }
