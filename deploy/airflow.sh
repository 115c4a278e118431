#!/bin/sh
# Airflow on this machine for one warehouse: SQLite, LocalExecutor, 127.0.0.1 only (docs/airflow.md).
#
#   deploy/airflow.sh WAREHOUSE               run it until Ctrl-C; PORT=8080 says where its pages are
#   deploy/airflow.sh WAREHOUSE COMMAND...    run a command of Airflow's own in this installation, such as `dags list`
#
# `airflow standalone` would start the same processes, and a triggerer and two log servers that listen on every address.
set -eu
warehouse=$(cd "${1:?the folder of the warehouse is missing}" && pwd)
shift
project=$(cd "$(dirname "$0")/.." && pwd)
home=$warehouse/airflow
url=http://127.0.0.1:${PORT:-8080}
mkdir -p -m 700 "$home" # it holds the password and the signing keys

bin=$project/.venv/bin
[ -d "$bin" ] || bin=$project/../../bin # of a wheel, which puts this below PREFIX/share/drivetail
PATH=$bin:$PATH
export PATH
export DRIVETAIL_WAREHOUSE="$warehouse" AIRFLOW_HOME="$home"
export AIRFLOW__CORE__DAGS_FOLDER="$project/dags" AIRFLOW__CORE__LOAD_EXAMPLES=False AIRFLOW__CORE__EXECUTOR=LocalExecutor
export AIRFLOW__API__HOST=127.0.0.1 AIRFLOW__API__PORT="${PORT:-8080}" AIRFLOW__API__BASE_URL="$url"
export AIRFLOW__CORE__EXECUTION_API_SERVER_URL="$url/execution/"
export AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION=False
export AIRFLOW__CORE__PARALLELISM="${AIRFLOW__CORE__PARALLELISM:-4}" AIRFLOW__API__WORKERS="${AIRFLOW__API__WORKERS:-1}"
export AIRFLOW__LOGGING__LOGGING_LEVEL="${AIRFLOW__LOGGING__LOGGING_LEVEL:-WARNING}"
# what a killed scheduler was doing goes on within a minute of the next start, not after five
export AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL=60
export SCARF_ANALYTICS=false DO_NOT_TRACK=1

command -v airflow >/dev/null || {
    echo "Airflow is not installed; \`make airflow\` installs it, or install drivetail[airflow]" >&2
    exit 1
}
# as `airflow "$@"`, but SQLite's lock is taken where the scheduler writes too
[ $# -eq 0 ] || exec python -m drivetail.service.airflow_command "$@"

airflow db migrate
airflow pools set drivetail_writer 1 "One writer per warehouse"

pids=
stop() {
    trap '' INT TERM HUP
    # shellcheck disable=SC2086 # several
    kill $pids 2>/dev/null || true
    (sleep 30 && kill -9 $pids 2>/dev/null) &
    # shellcheck disable=SC2086
    wait $pids || true
    kill $! 2>/dev/null || true
}
trap stop EXIT
trap 'exit 0' INT TERM HUP
airflow api-server &
pids=$!
# tasks report to it: a scheduler that is faster would start tasks that fail
until python -c "import urllib.request as r; r.urlopen('$url/api/v2/version', timeout=5)" 2>/dev/null; do
    kill -0 "$pids"
    sleep 1
done
for part in dag-processor "scheduler --skip-serve-logs"; do
    # shellcheck disable=SC2086 # a command and its option
    airflow $part &
    pids="$pids $!"
done
echo "Airflow: $url, user admin, password in $home/simple_auth_manager_passwords.json.generated (Ctrl-C ends it)"
while sleep 1; do
    for pid in $pids; do
        kill -0 "$pid" 2>/dev/null || {
            echo "a part of Airflow has ended, as said above; the others end, too" >&2
            exit 1
        }
    done
done
