{#- Makes the sources that models read: `raw.*` as views over the files of a raw folder, `plan.*` as tables, the stored models as views over
    the files that are there. Runs when dbt starts (dbt_project.yml, on-run-start); how an engine reads files and where it keeps tables is in
    macros/engine/. The environment says what it reads and how much:
    DRIVETAIL_RAW         the raw folder; the demo's unless given
    DRIVETAIL_DELIVERIES  number of the last delivery that counts; all unless given: what lands during a build waits for the next
    DRIVETAIL_DAYS        UTC days to compute and, while they are computed, to see, separated by commas; all unless given
    DRIVETAIL_HORIZON     UTC day before which drive-hours are pruned, and their files of raw about to go; none unless given
    DRIVETAIL_LAST_HOUR   last valid RAID-hour of the publication that the marts are to be those of; null unless given
    DRIVETAIL_STORE       folder of the stored models; target unless given, on Spark a folder below target/spark
    DRIVETAIL_TABLES      on Spark: folder of tables that DuckDB has made, which Spark reads as they are; none unless given -#}
{% macro register_raw() %}
    {%- if execute %}{% do register_days(days_to_compute()) %}{% endif %}
{% endmacro %}

{#- See register_raw(). days: those that are shown; none for all. -#}
{% macro register_days(days) %}
    {%- set tables = sources_of('raw') %}
    {%- set made = [] %}
    {%- for schema in ('raw', 'plan', 'staging', 'intermediate', 'marts') %}{% do made.append('create schema if not exists ' ~ schema) %}{% endfor %}
    {%- for table in sources_of('plan').values() %}
        {%- do made.append(create_table_if_missing() ~ ' plan.' ~ table.name ~ ' as ' ~ no_rows(table.columns)) %}
    {%- endfor %}
    {%- set files = raw_files() %}
    {%- for table in tables.values() if table.name not in ('decisions', 'publication') %}
        {%- set rows = raw_rows(table, files, days, made) %}
        {%- do made.append('create or replace view raw.' ~ table.name ~ ' as ' ~ rows) %}
    {%- endfor %}
    {%- set register = paths_below(raw_folder(), 'decisions.jsonl') %}
    {%- set rows = rows_of_register(register[0], made) if register else no_rows(tables['decisions'].columns) %}
    {%- do made.append('create or replace view raw.decisions as ' ~ rows) %}
    {%- for table, rows in rows_of_experiments(raw_folder()).items() %}{% do made.append('create or replace view raw.' ~ table ~ ' as ' ~ rows) %}{% endfor %}
    {%- if target.type == 'duckdb' %}{% do made.extend(lab_views()) %}{% endif %}
    {%- set now = modules.datetime.datetime.now(modules.pytz.utc).strftime('%Y-%m-%d %H:%M:%S.%f') %}
    {%- set instants = [] %}
    {%- for name in ('DRIVETAIL_LAST_HOUR', 'DRIVETAIL_HORIZON') %}
        {%- do instants.append("cast(" ~ ("'" ~ env_var(name) ~ "'" if env_var(name, '') else 'null') ~ ' as timestamp)') %}
    {%- endfor %}
    {%- do made.append(create_or_replace_table() ~ " raw.publication as select 'dbt' as publication_id, timestamp '" ~ now ~ "' as published_at, "
        ~ instants[0] ~ ' as last_hour_utc, ' ~ instants[1] ~ ' as pruned_before_utc') %}
    {%- do run_all(made) %}
    {%- do run_all(store_views(days)) %}
{% endmacro %}

{#- The tables of a source, by name. -#}
{% macro sources_of(name) %}
    {%- set found = {} %}
    {%- for source in graph.sources.values() if source.source_name == name %}{% do found.update({source.name: source}) %}{% endfor %}
    {{- return(found) }}
{% endmacro %}

{#- SQL for no rows of the columns of a source or model. -#}
{% macro no_rows(columns) %}
    {%- set typed = [] %}
    {%- for column in columns.values() %}{% do typed.append('cast(null as ' ~ column.data_type ~ ') as ' ~ adapter.quote(column.name)) %}{% endfor %}
    {{- return('select ' ~ typed | join(', ') ~ ' where false') }}
{% endmacro %}

{% macro raw_folder() %}{{ return(env_var('DRIVETAIL_RAW', 'demo/warehouse/raw')) }}{% endmacro %}

{#- Every Parquet file of the deliveries that count: path, name, table, day (null unless the table is kept by day), source (null for a source
    that names drives and RAID groups itself). In order of delivery. -#}
{% macro raw_files() %}
    {%- set last = env_var('DRIVETAIL_DELIVERIES', '') %}
    {%- set found = [] %}
    {%- for path in paths_below(raw_folder(), 'deliveries/*/*.parquet', 'deliveries/*/*/*.parquet') %}
        {%- set parts = path.split('/deliveries/')[-1].split('/') %}
        {%- set words = parts[-1].split('.')[:-1] %}
        {%- set source = words[-1] if words | length > 1 and not words[-1].isdigit() else none %}
        {#- what else lies there, such as a copy of a delivery under another name, is none #}
        {%- set is_delivery = modules.re.fullmatch('[0-9]{6,}[.](no-hours|[0-9-]{10}T[0-9]{2}[.][0-9-]{10}T[0-9]{2})', parts[0]) is not none %}
        {%- if is_delivery and (not last or parts[0].split('.')[0] | int <= last | int) %}
            {%- do found.append({'path': path, 'table': parts[1] if parts | length > 2 else words[0], 'day': words[0] if parts | length > 2 else none, 'source': source}) %}
        {%- endif %}
    {%- endfor %}
    {{- return(found) }}
{% endmacro %}

{#- The UTC days that this run computes, in order; none where it computes all that raw holds. -#}
{% macro days_to_compute() %}
    {%- set days = env_var('DRIVETAIL_DAYS', 'all') %}
    {{- return(none if days == 'all' else days.split(',') | reject('equalto', '') | list) }}
{% endmacro %}

{#- SQL for the rows of a raw table. Of drive-hours and samples those of the days to compute, and of drive-hours the hour before each.
    made: a list that statements are added to which come first. -#}
{% macro raw_rows(table, files, days, made) %}
    {%- set is_by_day = table.name in ('drive_hours', 'drive_samples') %}
    {%- set shown = {} %}
    {#- a stretch of days is one range: DuckDB skips row groups by one comparison, not by one of many -#}
    {%- set spans = [] %}
    {%- if is_by_day and days is not none %}
        {%- for day in days | sort %}
            {%- set start = modules.datetime.datetime.strptime(day, '%Y-%m-%d') %}
            {%- set looks_back = table.name == 'drive_hours' and start > modules.datetime.datetime(1, 1, 2) %}
            {%- set begin = start - modules.datetime.timedelta(hours=1) if looks_back else start %}
            {%- set end = start + modules.datetime.timedelta(hours=23, minutes=59, seconds=59, microseconds=999999) %}
            {%- do shown.update({day: true, begin.strftime('%Y-%m-%d').rjust(10, '0'): true}) %}
            {%- if spans and begin <= spans[-1][1] + modules.datetime.timedelta(microseconds=1) %}
                {%- do spans.append((spans.pop()[0], end)) %}
            {%- else %}
                {%- do spans.append((begin, end)) %}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
    {%- set own, others = [], [] %}
    {%- set horizon = env_var('DRIVETAIL_HORIZON', '') %}
    {%- for file in files if file.table == table.name and (not is_by_day or (days is none and file.day >= horizon) or file.day in shown) %}
        {%- do (own if file.source is none else others).append(file.path) %}
    {%- endfor %}
    {%- set rows = rows_of_files(table, own, others, made) if own or others else no_rows(table.columns) %}
    {%- if spans and (own or others) %}
        {%- set at = 'hour_utc' if table.name == 'drive_hours' else 'from_utc' %}
        {%- set conditions = [] %}
        {%- for begin, end in spans %}
            {%- do conditions.append(at ~ " >= timestamp '" ~ begin ~ "' and " ~ at ~ " <= timestamp '" ~ end ~ "'") %}
        {%- endfor %}
        {%- set rows = 'select * from (' ~ rows ~ ') where (' ~ conditions | join(') or (') ~ ')' %}
    {%- endif %}
    {{- return(rows) }}
{% endmacro %}
