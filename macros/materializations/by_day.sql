{#- A model that is stored by UTC day: one immutable Parquet file for each day that this run computes,
        STORE/<model>/day_utc=YYYY-MM-DD/<build>.0.parquet
    behind a view of the same name (docs/decisions/0002-the-day-is-the-unit.md). The model has a column `day_utc`; its rows of other days, such as the
    hour before midnight that a day looks back at, are not written. plan.files says which file of a day is live. On Spark the days are the
    partitions of a table with files in the same folders, and those of the run replace what is there. -#}
{% materialization by_day, adapter='duckdb' %}
    {#- dbt lists a schema when it is first asked for it, unless something has been made there: then a table of an earlier run is overlooked -#}
    {%- do load_cached_relation(this) -%}
    {%- set target_relation = this.incorporate(type='view') -%}
    {{ run_hooks(pre_hooks) }}
    {%- set folder = store_folder() ~ '/' ~ this.identifier -%}
    {%- set build = env_var('DRIVETAIL_BUILD', '000000') -%}
    {%- if config.get("contract").enforced %}{{ get_assert_columns_equivalent(sql) }}{% endif -%}
    {%- set days = days_to_compute() -%}
    {%- set is_one_day = days is not none and days | length == 1 -%}
    {%- set days = days if days is not none else landed_days() -%}
    {#- columns that the view works out from the stored ones -#}
    {%- set left_out = config.get('ratios', {}).keys() | list -%}
    {#- Dictionaries are for columns of few values: trying one on every measurement takes a fifth of the time and saves nothing. -#}
    {%- set options = 'format parquet, compression zstd, compression_level 1, dictionary_size_limit 1000' -%}
    {#- The right side of a join is the one held in memory, as the models are written: DuckDB guesses the rows of Parquet files from a few
        of them, and would hold a day's 12 million wide rows instead of its RAID-hours. -#}
    {% call statement('main') -%}
        set disabled_optimizers = 'build_side_probe_side';
    {% if is_one_day -%}
        {#- the build has made the folder -#}
        copy (select * exclude ({{ (['day_utc'] + left_out) | join(', ') }}) from ({{ sql }}) where day_utc = date '{{ days[0] }}')
        to '{{ folder | replace("'", "''") }}/day_utc={{ days[0] }}/{{ build }}.0.parquet' ({{ options }})
    {%- elif days -%}
        copy (select *{{ ' exclude (' ~ left_out | join(', ') ~ ')' if left_out }} from ({{ sql }}) where day_utc in (date '{{ days | join("', date '") }}'))
        to '{{ folder | replace("'", "''") }}' ({{ options }}, partition_by (day_utc), filename_pattern '{{ build }}.', overwrite_or_ignore)
    {%- endif -%};
        set disabled_optimizers = '';
    {%- endcall %}
    {% do enter_files(this.identifier, folder, build, days, is_one_day) %}
    {% call statement('view') -%}{{ store_views(days_to_compute(), this.identifier) | first }}{%- endcall %}
    {{ run_hooks(post_hooks) }}
    {{ adapter.commit() }}
    {#- none is entered into dbt's cache: it would take the schema for known and not see what else is in it -#}
    {{ return({'relations': []}) }}
{% endmaterialization %}

{% materialization by_day, adapter='spark' %}
    {{ run_hooks(pre_hooks) }}
    {%- if config.get("contract").enforced %}{{ get_assert_columns_equivalent(sql) }}{% endif -%}
    {%- set days = days_to_compute() -%}
    {%- set rows = 'store.' ~ this.identifier -%}
    {%- set condition = "day_utc in (date '" ~ (days or ['0001-01-01']) | join("', date '") ~ "')" -%}
    {%- set names = model.columns.keys() | reject('equalto', 'day_utc') | reject('in', config.get('ratios') or {}) | list -%}
    {%- set before = {} if days is none else spark_files(rows, condition) -%}
    {%- do run_query('set spark.sql.sources.partitionOverwriteMode = ' ~ ('static' if days is none else 'dynamic')) -%}
    {% call statement('main') -%}
        insert overwrite {{ rows }} partition (day_utc)
        select {{ '/*+ rebalance(day_utc) */ ' if days is none or days | length > 1 }}{{ names | join(', ') }}, day_utc from ({{ sql }}) {{ 'where ' ~ condition if days is not none }}
    {%- endcall %}
    {#- a day of which no rows are left is not one that dynamic partitions replace -#}
    {%- set left = [] -%}
    {%- if before -%}
        {%- for file, day in spark_files(rows, condition).items() if file in before %}{% do left.append(day) %}{% endfor -%}
    {%- endif -%}
    {%- for day in left | unique -%}
        {%- do run_query('insert overwrite ' ~ rows ~ " partition (day_utc = date '" ~ day ~ "') select " ~ (['null'] * names | length) | join(', ') ~ ' where false') -%}
    {%- endfor -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': []}) }}
{% endmaterialization %}

{#- The files that some days of a stored model have rows in, each with its day. -#}
{% macro spark_files(rows, condition) %}
    {%- set found = {} %}
    {%- set query = 'select distinct cast(day_utc as string) as day_utc, input_file_name() as file from ' ~ rows ~ ' where ' ~ condition %}
    {%- for row in run_query(query).rows %}{% do found.update({row[1]: row[0]}) %}{% endfor %}
    {{- return(found) }}
{% endmacro %}

{% macro store_folder() %}{{ return(env_var('DRIVETAIL_STORE', 'target')) }}{% endmacro %}

{#- Makes the files that a build has just written the live ones of their days. A day without rows may have none. is_one_day: its name is known. -#}
{% macro enter_files(name, folder, build, days, is_one_day) %}
    {%- if days %}
    {%- set dates = "date '" ~ days | join("', date '") ~ "'" %}
    {%- set version = "'" ~ env_var('DRIVETAIL_MODELS_VERSION', '') ~ "'" %}
    {%- do run_query("delete from plan.files where model = '" ~ name ~ "' and day_utc in (" ~ dates ~ ")") %}
    {%- if is_one_day %}
        {%- set file = name ~ '/day_utc=' ~ days[0] ~ '/' ~ build ~ '.0.parquet' %}
        {%- do run_query("insert into plan.files values ('" ~ name ~ "', " ~ dates ~ ", '" ~ file ~ "', " ~ version ~ ")") %}
    {%- else %}
        {%- do run_query(
            "insert into plan.files select '" ~ name ~ "', day_utc, file[" ~ (store_folder() | length + 2) ~ ":], " ~ version ~ " from ("
            ~ "select file, cast(regexp_extract(file, 'day_utc=([0-9-]+)/[^/]*$', 1) as date) as day_utc from glob('" ~ folder | replace("'", "''")
            ~ "/day_utc=*/" ~ build ~ ".*.parquet')) where day_utc in (" ~ dates ~ ")"
        ) %}
    {%- endif %}
    {%- endif %}
{% endmacro %}

{#- Days of which raw holds drive-hours. -#}
{% macro landed_days() %}
    {%- set found = [] %}
    {%- for file in raw_files() if file.table == 'drive_hours' %}{% do found.append(file.day) %}{% endfor %}
    {{- return(found | unique | sort) }}
{% endmacro %}

{#- SQL that makes each stored model, or the one of a name, a view over its live files of some days, none for all. -#}
{% macro store_views(days, name=none) %}{{ return(adapter.dispatch('store_views')(days, name)) }}{% endmacro %}
{% macro duckdb__store_views(days, name) %}
    {%- set conditions = ['true'] %}
    {%- if days is not none %}{% do conditions.append("day_utc in (date '" ~ (days or ['0001-01-01']) | join("', date '") ~ "')") %}{% endif %}
    {%- if name %}{% do conditions.append("model = '" ~ name ~ "'") %}{% endif %}
    {%- set live %}
        select
            model,
            string_agg('''' || replace('{{ store_folder() | replace("'", "''") }}/' || file, '''', '''''') || '''', ', ' order by day_utc, file),
            bool_and(models_version = '{{ env_var('DRIVETAIL_MODELS_VERSION', '') }}')
        from plan.files
        where {{ conditions | join(' and ') }}
        group by model
    {%- endset %}
    {%- set stored = {} %}
    {%- for row in run_query(live).rows %}{% do stored.update({row[0]: {'files': row[1], 'are_of_these_models': row[2]}}) %}{% endfor %}
    {%- set made = [] %}
    {%- for node in graph.nodes.values() if node.config.materialized == 'by_day' and name in (none, node.name) %}
        {%- set found = stored.get(node.name) %}
        {%- set rows = no_rows(node.columns) %}
        {%- if found %}
            {%- set read = 'select * from read_parquet([' ~ found.files ~ "], hive_partitioning = true, hive_types = {'day_utc': date}" %}
            {#- DuckDB takes a folder above the store such as drive_id=x for a column, too. Below one the day is cut out of the path: a join on
                it then skips no file. -#}
            {%- if '=' in store_folder() %}
                {%- set day = "cast(regexp_extract(filename, '.*/day_utc=([0-9-]+)/', 1) as date) as day_utc" %}
                {%- set read = 'select *, ' ~ day ~ ' from read_parquet([' ~ found.files ~ '], hive_partitioning = false, filename = true' %}
            {%- endif %}
            {#- what is left of a pruned past may be of other models: then by name, a column that it lacks is null -#}
            {%- set rows = read ~ ')' if found.are_of_these_models else rows ~ ' union all by name ' ~ read ~ ', union_by_name = true)' %}
        {%- endif %}
        {%- do made.append(store_view(node, '(' ~ rows ~ ')', node.config.get('ratios') or {} if found else {})) %}
    {%- endfor %}
    {{- return(made) }}
{% endmacro %}
{% macro spark__store_views(days, name) %}
    {%- set made = ['create schema if not exists store'] %}
    {%- if env_var('DRIVETAIL_TABLES', '') %}{% do made.extend(spark_tables_of(env_var('DRIVETAIL_TABLES'))) %}{% endif %}
    {%- for node in graph.nodes.values() if node.config.materialized == 'by_day' and name in (none, node.name) %}
        {%- set ratios = node.config.get('ratios') or {} %}
        {%- set columns = [] %}
        {%- for column in node.columns.values() if column.name not in ratios %}{% do columns.append(column.name ~ ' ' ~ column.data_type) %}{% endfor %}
        {%- do made.append('drop table if exists store.' ~ node.name) %}
        {%- do made.append('create table store.' ~ node.name ~ ' (' ~ columns | join(', ') ~ ") using parquet options (compression 'zstd') partitioned by (day_utc) "
            ~ spark_location(node.name)) %}
        {%- set condition = " where day_utc in (date '" ~ (days or ['0001-01-01']) | join("', date '") ~ "')" if days is not none %}
        {%- do made.append(store_view(node, 'store.' ~ node.name ~ (condition or ''), ratios)) %}
    {%- endfor %}
    {{- return(made) }}
{% endmacro %}

{#- SQL for the view of a stored model over its rows. ratios: SQL of the columns that are not stored. -#}
{% macro store_view(node, rows, ratios) %}
    {%- set names = [] %}
    {%- for column in node.columns.values() %}
        {%- do names.append((ratios[column.name] ~ ' as ' if column.name in ratios) ~ adapter.quote(column.name)) %}
    {%- endfor %}
    {{- return('create or replace view ' ~ node.schema ~ '.' ~ node.name ~ ' as select ' ~ names | join(', ') ~ ' from ' ~ rows) }}
{% endmacro %}
