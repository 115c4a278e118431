{#- SQL for the rows of a raw table's Parquet files. own: paths of files of sources that name drives and RAID groups themselves and write no
    columns that say so, which are null then. others: of all other sources. made: see raw_rows(). -#}
{% macro rows_of_files(table, own, others, made) %}{{ return(adapter.dispatch('rows_of_files')(table, own, others, made)) }}{% endmacro %}
{% macro duckdb__rows_of_files(table, own, others, made) %}
    {%- set said = [] %}
    {%- for column in table.columns.values() if column.name in ('source', 'is_alias', 'is_group_guessed') and not table.name.startswith('retired_') and table.name not in ('rejected_records', 'ingested_files') %}
        {%- do said.append(', cast(null as ' ~ column.data_type ~ ') as ' ~ column.name) %}
    {%- endfor %}
    {%- set sides = [] %}
    {%- for paths, more in ((own, said | join), (others, '')) if paths %}
        {%- set quoted = [] %}
        {%- for path in paths %}{% do quoted.append("'" ~ path | replace("'", "''") ~ "'") %}{% endfor %}
        {#- a folder above the warehouse such as drive_id=x is no column of the file -#}
        {%- do sides.append('select *' ~ more ~ ' from read_parquet([' ~ quoted | join(', ') ~ '], hive_partitioning = false)') %}
    {%- endfor %}
    {{- return(sides | join(' union all by name ')) }}
{% endmacro %}
{% macro spark__rows_of_files(table, own, others, made) %}
    {#- A table of declared columns: one that a file lacks is null. Its files are those of one glob. -#}
    {%- set paths, columns = [], [] %}
    {%- for path in own + others %}{% do paths.append(path.rsplit('/deliveries/', 1)[1]) %}{% endfor %}
    {%- for column in table.columns.values() %}{% do columns.append(adapter.quote(column.name) ~ ' ' ~ column.data_type) %}{% endfor %}
    {%- set glob = spark_glob((own + others)[0].rsplit('/deliveries/', 1)[0]) ~ '/deliveries/{' ~ paths | join(',') ~ '}' %}
    {%- do made.append('drop table if exists raw.' ~ table.name ~ '__files') %}
    {%- do made.append('create table raw.' ~ table.name ~ '__files (' ~ columns | join(', ') ~ ") using parquet options (path '" ~ glob ~ "')") %}
    {{- return('select * from raw.' ~ table.name ~ '__files') }}
{% endmacro %}
