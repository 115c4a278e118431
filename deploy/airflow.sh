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
# of imports in Airflow's own code, many a minute
export PYTHONWARNINGS="${PYTHONWARNINGS:-ignore}"
# the one that Airflow makes is shorter than it asks for itself, and each use of it would be a warning in the journal
secret=$home/jwt_secret
[ -s "$secret" ] || (umask 077 && head -c 64 /dev/urandom | base64 -w 0 >"$secret")
AIRFLOW__API_AUTH__JWT_SECRET=$(cat "$secret")
export AIRFLOW__API_AUTH__JWT_SECRET

command -v airflow >/dev/null || {
    hint=$(python -c 'import drivetail.path; from ingest.contract.extras import how_to_install; print(how_to_install("airflow"))')
    echo "Airflow is not installed; in a checkout \`make airflow\` installs it, else $hint" >&2
    exit 1
}
# as `airflow "$@"`, but SQLite's lock is taken where the scheduler writes too
[ $# -eq 0 ] || exec python -m drivetail.service.airflow_command "$@"

# tasks of two schedulers would come in each other's way; whoever inherits it holds it until it ends
exec 9>"$home/service.lock"
flock -n 9 || {
    echo "$warehouse: another Airflow runs it; stop that one first (one service per warehouse)" >&2
    exit 1
}

passwords=$home/simple_auth_manager_passwords.json.generated
# one that Airflow makes it prints, too, and a journal would keep it
[ -s "$passwords" ] || (
    umask 077
    python -c "import json, secrets; print(json.dumps({'admin': secrets.token_urlsafe(16)}))" >"$passwords"
)
airflow db migrate
airflow pools set drivetail_writer 1 "One writer per warehouse"

# Each part runs in a session of its own: it is ended whole, and Ctrl-C reaches this script alone.
members() { # processes of a session that have not ended: tasks have groups of their own
    for stat in /proc/[0-9]*/stat; do
        { read -r line <"$stat"; } 2>/dev/null || continue
        pid=${line%% *}
        # shellcheck disable=SC2086 # after the name: state, parent, group, session
        set -- "$1" ${line##*) }
        [ "$5" != "$1" ] || [ "$2" = Z ] || echo "$pid"
    done
}
is_there() { kill -0 "$1" 2>/dev/null || [ -n "$(members "$1")" ]; }
end() { # a part, and how many seconds its first process has to end the others; what is left then is killed
    [ -n "$1" ] && is_there "$1" || return 0
    kill "$1" 2>/dev/null || true
    left=$2
    while [ "$left" -gt 0 ] && is_there "$1"; do
        sleep 1
        left=$((left - 1))
    done
    for pid in $(members "$1"); do
        kill -9 "$pid" 2>/dev/null || true
    done
}
api='' processor='' scheduler=''
stop() {
    trap '' INT TERM HUP
    # tasks report to the API server: it ends last
    end "$scheduler" 30
    end "$processor" 10
    end "$api" 10
}
trap stop EXIT
trap 'exit 0' INT TERM HUP
ended() {
    echo "Airflow's $1 has ended (its last lines are above, those of its tasks in $home/logs); the others end, too" >&2
    exit 1
}
setsid airflow api-server &
api=$!
# a scheduler that is faster would start tasks that cannot report, and fail
until python -c "import urllib.request as r; r.urlopen('$url/api/v2/version', timeout=5)" 2>/dev/null; do
    kill -0 "$api" 2>/dev/null || ended "API server"
    sleep 1
done
setsid airflow dag-processor &
processor=$!
setsid airflow scheduler --skip-serve-logs &
scheduler=$!
echo "Airflow: $url, user admin, password in $passwords (Ctrl-C ends it)"
while sleep 1; do
    kill -0 "$api" 2>/dev/null || ended "API server"
    kill -0 "$processor" 2>/dev/null || ended "DAG processor"
    kill -0 "$scheduler" 2>/dev/null || ended scheduler
done
