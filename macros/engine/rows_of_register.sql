{#- SQL for the register of decisions as it is when it is read: a decision counts at once, without a build. A line that a killed writer
    left without its end is no decision. made: see raw_rows(). -#}
{% macro rows_of_register(path, made) %}{{ return(adapter.dispatch('rows_of_register')(path, made)) }}{% endmacro %}
{% macro duckdb__rows_of_register(path, made) %}
    {%- set rows %}
        select
            row_number() over () as decision_seq,
            drive_id, verdict, "by" as decided_by, "at" as decided_at, note, "until" as until_utc, publication_id, ticket
        from read_json(
            '{{ path | replace("'", "''") }}', format = 'newline_delimited', ignore_errors = true, hive_partitioning = false,
            columns = {drive_id: 'varchar', verdict: 'varchar', "by": 'varchar', "at": 'timestamp', note: 'varchar', "until": 'timestamp', publication_id: 'varchar', ticket: 'varchar'}
        )
        -- DuckDB reads such a line as one without values
        where drive_id is not null
    {%- endset %}
    {{- return(rows) }}
{% endmacro %}
{% macro spark__rows_of_register(path, made) %}
    {%- set columns = 'drive_id string, verdict string, `by` string, `at` string, note string, `until` string, publication_id string, ticket string' %}
    {%- do made.append('drop table if exists raw.decisions__file') %}
    {%- do made.append('create table raw.decisions__file (' ~ columns ~ ") using json options (path '" ~ spark_glob(path) ~ "', mode 'DROPMALFORMED')") %}
    {%- set rows %}
        select
            cast(row_number() over (order by monotonically_increasing_id()) as bigint) as decision_seq,
            drive_id, verdict, `by` as decided_by, cast(`at` as timestamp) as decided_at, note, cast(`until` as timestamp) as until_utc, publication_id, ticket
        from raw.decisions__file
    {%- endset %}
    {{- return(rows) }}
{% endmacro %}
