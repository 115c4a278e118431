#!/bin/sh
# Two services for Checkmk, as a local check on the warehouse's host: does drivetail need an operator, and which drives have become slow?
# Takes seconds: put it into /usr/lib/check_mk_agent/local/900, whose checks run every 900 s. Usage: checkmk.sh [WAREHOUSE [DRIVETAIL]]
export DRIVETAIL_WAREHOUSE="${1:-/srv/warehouse}"
drivetail=${2:-/opt/drivetail/bin/drivetail}

value() {
    printf '%s\n' "$metrics" | awk -v name="drivetail_$1" '$1 == name { printf "%d", $2 }'
}
# a service is one line, whatever senders have put into names
service() {
    printf '%s' "$*" | tr '[:cntrl:]' ' '
    echo
}

said=$(timeout 120 "$drivetail" status --check 2>&1)
code=$?
metrics=$(timeout 120 "$drivetail" metrics 2>/dev/null)
case $code in
    0) service 0 drivetail - nothing needs an operator ;;
    1) service $((2 - 0$(value publication_usable))) drivetail - "${said#drivetail: }" ;;
    *) service 3 drivetail - "cannot be asked, exit code $code: $said" ;;
esac
alerts=$(value slow_alerts)
drives=$(printf '%s\n' "$metrics" | sed -n 's/^drivetail_slow_alert{.*subject_id="\([^"]*\)".*/\1/p' | head -n 10)
case $alerts in
    '') service 3 drivetail-slow-drives - not known: see the service drivetail ;;
    0) service 0 drivetail-slow-drives alerts=0 no open alert ;;
    *) service 1 drivetail-slow-drives "alerts=$alerts" "open alerts, the latest first: $drives" ;;
esac
