"""Findings of `drivetail doctor` on a source before its first ingest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

OK, WEAK, MISSING = "ok", "weak", "missing"


@dataclass(frozen=True)
class Finding:
    """One check. `state`: ok; weak, the source can be used but gives less; missing, it cannot be used as it is. `todo`: what to do then.

    `first_hour_utc`: the first hour that a server has, where it was looked for (UTC).
    """

    check: str
    state: str
    said: str
    todo: str = ""
    first_hour_utc: datetime | None = None


@dataclass(frozen=True)
class Inventory:
    """Data that has landed already. `groups`: RAID group by drive; `serials`: serial number by the name that a host has for the drive;
    `mapped`: those of the groups that an operator gave; `kinds`: `disk` or `ssd`, by drive.
    """

    groups: Mapping[str, str] = field(default_factory=dict)
    serials: Mapping[str, str] = field(default_factory=dict)
    mapped: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)

    def group_of(self, *names: str | None, named: str | None = None) -> str | None:
        """The RAID group of a drive that has these names; null where it is not known. named: the one that its rows name."""
        known = [name for given in names if given for name in (self.serials.get(given), given) if name]
        mapped = next((self.mapped[name] for name in known if name in self.mapped), None)
        return mapped or named or next((self.groups[name] for name in known if name in self.groups), None)

    def has_kind(self, name: str) -> bool:
        """Whether it is known what a drive is compared with: its kind, or that it is an NVMe drive by its name."""
        return "/nvme" in name or any(known in self.kinds for known in (name, self.serials.get(name)))


def kind_finding(unknown: int, drives: int, hosts: Sequence[str] = ()) -> list[Finding]:
    """Whether drives can be compared with those of their kind: `unknown` drives with each other. hosts: that of each, where it is known."""
    if not unknown:
        return []
    where = f" ({by_host(hosts)})" if hosts else ""
    said = (
        f"of {unknown} of {drives} drives{where} the kind is unknown; they are compared with each other, or with an array of one known kind"
    )
    todo = "say it with --kind disk or --kind ssd if all are of one kind; else ingest lsblk or smartctl of the hosts, or give a mapping"
    return [Finding("kinds", WEAK, said, f"{todo} (`drivetail map`)")]


def hidden_finding(by_host: Mapping[str, Sequence[str]]) -> list[Finding]:
    """Logical drives of RAID controllers, by host: what is behind them is not visible."""
    if not by_host:
        return []
    shown = some_of([f"{host} ({', '.join(sorted(devices))})" for host, devices in sorted(by_host.items())])
    count = sum(map(len, by_host.values()))
    said = f"{count_of(count, 'logical drive')} of a RAID controller, so the drives behind it are not visible: {shown}"
    todo = "no mapping can show them; have the controller pass the drives through (HBA or JBOD mode), or leave these out"
    return [Finding("hidden", WEAK, said, todo)]


def by_host(hosts: Sequence[str]) -> str:
    """Hosts, one for each drive: `web1: 8, web2: 2`."""
    return some_of([f"{host}: {count}" for host, count in sorted(Counter(hosts).items())])


def some_of(names: list[str], shown: int = 5) -> str:
    """The first of some names, and how many more there are."""
    return ", ".join(names[:shown]) + (f" and {len(names) - shown} more" if len(names) > shown else "")


def count_of(number: int, noun: str) -> str:
    """`1 drive`, `2 drives`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def group_findings(groups: dict[str, int], guessed: int, least: int) -> list[Finding]:
    """Whether drives have peers: `groups`, drives by RAID group; `guessed`, how many of them only share a host."""
    drives = sum(groups.values())
    if not drives:
        return [Finding("groups", MISSING, "no drive is in any group")]
    small = sorted(group for group, count in groups.items() if count < least)
    todo = "run deploy/membership.sh on the hosts (POSIX shell, no Python), or give --group-label or a mapping (`drivetail map`)"
    found = []
    if guessed:
        said = f"{guessed} of {drives} drives have no known RAID group; each is compared with a guess, as a rule all drives of its host"
        found.append(Finding("groups", WEAK, said, todo))
    else:
        found.append(Finding("groups", OK, f"{count_of(drives, 'drive')} in {count_of(len(groups), 'group')}"))
    if small:
        alone = count_of(sum(groups[group] for group in small), "drive")
        few = f"{len(small)} of {len(groups)} groups have fewer than {least} drives: {some_of(small)}"
        state = MISSING if len(small) == len(groups) else WEAK
        found.append(Finding("peers", state, f"{few}; {alone} there are compared with nobody", todo))
    else:
        found.append(Finding("peers", OK, f"every group has {least} drives or more"))
    return found
