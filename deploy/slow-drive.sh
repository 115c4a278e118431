#!/bin/sh
# Whether a drive of this host is slow, by the lines of `drivetail export --findings FILE.txt`: a health check of Slurm or LBNL NHC,
# and a custom plugin of node-problem-detector. Prints the line; exits 1 while a drive is slow and somebody is to act on it, 0 when none
# is, 2 where nothing is known. Usage: slow-drive.sh [FILE.txt [HOST]]; a pod's host is its NODE_NAME.
file=${1:-/srv/drivetail/slow.txt}
hosts=${2:-${NODE_NAME:-$(timeout 2 hostname -f) $(hostname -s)}}
# a list that nobody has written for a day says nothing
if [ -z "$(find -L "$file" -mmin -1440 2>/dev/null)" ]; then
    echo "$file is missing or older than a day"
    exit 2
fi
for host in $hosts "${hosts%%.*}"; do
    line=$(awk -v host="$host" '$1 == host { $1 = ""; print substr($0, 2); exit }' "$file")
    [ -n "$line" ] && break
done
echo "${line:-$hosts is not in $file}"
case $line in
    slow\ *) exit 1 ;;
    '') exit 2 ;;
    *) exit 0 ;;
esac
