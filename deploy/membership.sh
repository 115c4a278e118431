#!/bin/sh
# Which drive is in which md array or ZFS vdev, its serial and model, for node_exporter's textfile collector: the series that
# `drivetail collect --textfile` writes, on hosts without Python. Run it as root every few minutes (deploy/systemd/drivetail-membership.timer):
#
#   membership.sh /var/lib/prometheus/node-exporter     write drivetail_membership.prom there, in one step
#   membership.sh                                       print it
#
# It reads sysfs, udev's database and `zpool status`, and writes to no drive. SYSFS and UDEV are for its tests.
set -eu
sys=${SYSFS:-/sys} udev=${UDEV:-/run/udev/data}
tab=$(printf '\t')

first_line() { # of file $1; empty where there is none
    line=
    [ ! -r "$1" ] || IFS= read -r line <"$1" || :
}

name_drive() { # drive: the one that device $1 is, or is a partition of
    drive=$1
    for place in "$sys/block/"*/"$1"; do
        [ ! -e "$place/partition" ] || { place=${place%/*} && drive=${place##*/}; }
    done
}

say() { # said: what udev's database has of the device in folder $1 by the first of the names after it; empty where nothing
    first_line "$1/dev"
    said=
    shift
    for name; do
        [ "$said" ] || said=$(sed -n "s/^E:$name=//p" "$udev/b$line" 2>/dev/null) || said=
    done
}

label() { # text $1, else the line in file $2, as the value of a label
    first_line "$2"
    printf %s "${1:-$line}" | sed 's/\\x20/ /g; s/\\x2f/\//g; s/^ *//; s/ *$//; s/["\\]/\\&/g'
}

show() { # array $1, device $2, UUID $3, role $4; serial and model as lsblk finds them
    name_drive "$2"
    place=$sys/block/$drive
    drive=$(printf %s "$drive" | tr '!' /) # sysfs names cciss/c0d0 cciss!c0d0
    say "$place" ID_SCSI_SERIAL SCSI_IDENT_SERIAL ID_SERIAL_SHORT && serial=$(label "$said" "$place/device/serial")
    say "$place" ID_MODEL_ENC ID_MODEL && model=$(label "$said" "$place/device/model")
    printf 'drivetail_md_member{md="%s",device="%s",uuid="%s",role="%s",serial="%s",model="%s"} 1\n' "$1" "$drive" "$3" "$4" "$serial" "$model"
}

name_role() { # role: what slot $4 of $3 holds, in layout $2 (drivers/md/raid5.h) of level $1; where parity rotates every drive holds data
    case $1:$2:$(($3 - $4)):$4 in
        raid4:*:1:* | raid5:4:*:0 | raid5:5:1:* | raid6:4:*:0 | raid6:5:2:* | raid6:20:*:0) role=parity_p ;;
        raid6:4:*:1 | raid6:5:1:* | raid6:1[6-9]:1:* | raid6:20:1:*) role=parity_q ;;
        *) role=data ;;
    esac
}

find_uuid() { # uuid: of the array in folder $1, as mdadm prints it; empty where nobody says
    say "$1" MD_UUID && uuid=$said
    first_line "$1/md/metadata_version"
    case $uuid:$line in
        :1.*) # the bytes of older metadata would have to be turned
            first_line "$1/md/uuid"
            uuid=$(printf %s "$line" | tr -d - | sed -n 's/^\(.\{8\}\)\(.\{8\}\)\(.\{8\}\)\(.\{8\}\)$/\1:\2:\3:\4/p')
            ;;
    esac
}

list_arrays() { # the md arrays that run
    for array in "$sys/block/md"*; do
        first_line "$array/md/level" && level=$line
        first_line "$array/md/array_state"
        case $level:$line in
            :* | container:* | faulty:* | *:clear | *:inactive) continue ;;
        esac
        first_line "$array/md/layout" && layout=$line
        first_line "$array/md/raid_disks" && width=${line%% *} # `5 (4)` while it grows
        find_uuid "$array"
        for member in "$array/md/dev-"*; do
            first_line "$member/slot" && slot=$line
            first_line "$member/state"
            case ,$line,$slot in
                ,,* | *,faulty,* | *,journal,*) continue ;; # gone; no share of the data
                *,replacement,* | *,none) role=spare ;;
                *) name_role "$level" "$layout" "$width" "$slot" ;;
            esac
            first_line "$member/size" # KiB
            printf '%s ' "${line:-0}"
            show "${array##*/}" "${member##*/dev-}" "$uuid" "$role"
        done
    done
}

keep_largest() { # of series on stdin, each after its KiB: a drive's in the array that has most of its bytes
    awk -F '"' '{
            kib = $0 + 0; sub(/^[0-9]* /, ""); line[NR] = $0; md[NR] = $2; drive[NR] = $4
            sum[$4, $2] += kib
            if (!($4 in most) || sum[$4, $2] >= sum[$4, most[$4]]) most[$4] = $2
        }
        END { for (n = 1; n <= NR; n++) if (md[n] == most[drive[n]] && !shown[line[n]]++) print line[n] }'
}

list_vdevs() { # ZFS: peers are the drives of a vdev; single drives of a pool are each other's
    zpool status -LP | sed -n -e 's/^ *pool: /pool /p' -e "/^config:/,/^errors:/{/^$tab/p;}" | while IFS= read -r line; do
        # shellcheck disable=SC2086 # its words
        set -- $line
        case $line in
            'pool '*) pool=${line#pool } section='' vdev='' ;; # a name may have spaces
            "$tab$pool "* | "${tab}NAME "*) ;;
            "$tab"[!\ ]*) section=/$1 ;; # logs, cache, special, spares
            "$tab  /"* | "$tab  replacing-"* | "$tab  spare-"*) vdev=$section ;;
            "$tab  "[!\ ]*) vdev=/$1 ;;
        esac
        case $section:${2:-}:$1 in
            /spares:AVAIL:/dev/*) show "$pool" "${1#/dev/}" '' spare ;; # in use it is listed in its vdev
            *:ONLINE:/dev/* | *:DEGRADED:/dev/*) show "$pool$vdev" "${1#/dev/}" '' data ;;
        esac
    done
}

show_all() {
    echo '# HELP drivetail_md_member Drive that a member of an md array or a ZFS vdev is on, 1.'
    echo '# TYPE drivetail_md_member gauge'
    list_arrays | keep_largest
    ! command -v zpool >/dev/null || list_vdevs
}

[ $# -gt 0 ] || { show_all && exit; }
draft=$1/.drivetail_membership.$$
trap 'rm -f "$draft"' EXIT
show_all >"$draft"
chmod 644 "$draft"
mv -f "$draft" "$1/drivetail_membership.prom"
