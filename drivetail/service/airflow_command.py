"""A command of Airflow's own, such as `backfill create`, while a scheduler writes to the same SQLite.

A savepoint that begins a transaction there takes the lock for writing only when something is written; what the scheduler wrote since
the first read then ends the command with `database is locked`, and for minutes no backfill can be begun. So the lock is taken first.
"""

from __future__ import annotations

from sqlalchemy import Connection, Engine, event

WAIT_MS = 60_000


@event.listens_for(Engine, "savepoint")
def take_the_lock(connection: Connection, name: str) -> None:
    """Begin the transaction of a savepoint as one that writes."""
    database = connection.connection.dbapi_connection
    if connection.dialect.name == "sqlite" and database and not database.in_transaction:
        connection.exec_driver_sql(f"pragma busy_timeout = {WAIT_MS}")
        connection.exec_driver_sql("begin immediate")


if __name__ == "__main__":
    from airflow.__main__ import main

    main()
