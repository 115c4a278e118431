{#- SQL for the rows of each table of `drivetail toleraid` by its name, as they are when it is read: a run counts at once, without a build. -#}
{% macro rows_of_experiments(folder) %}{{ return(adapter.dispatch('rows_of_experiments')(folder)) }}{% endmacro %}
{% macro duckdb__rows_of_experiments(folder) %}
    {%- set tables, rows = sources_of('toleraid'), {} %}
    {%- set begun = paths_below(folder, 'toleraid/none/*.parquet') %}
    {%- for table in tables.values() %}
        {%- set files = folder | replace("'", "''") ~ '/toleraid/*/' ~ table.name ~ '.parquet' %}
        {%- do rows.update({table.name: "select * from read_parquet('" ~ files ~ "', hive_partitioning = false)" if begun else no_rows(table.columns)}) %}
    {%- endfor %}
    {{- return(rows) }}
{% endmacro %}
{#- An experiment runs on one machine: its models are left out (dbt_project.yml). -#}
{% macro spark__rows_of_experiments(folder) %}{{ return({}) }}{% endmacro %}
