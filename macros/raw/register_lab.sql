{#- SQL that makes the sources of the lab, `lab_raw.*`: views over the files of some experiments' deliveries. The environment says which:
    DRIVETAIL_LAB          folder of the landed bundles; without one, as in a build of the fleet, the sources have no rows
    DRIVETAIL_EXPERIMENTS  ids of the experiments, separated by commas; all unless given -#}
{% macro lab_views() %}
    {%- set made, files = ['create schema if not exists lab_raw'], {} %}
    {%- set folder, wanted = env_var('DRIVETAIL_LAB', ''), env_var('DRIVETAIL_EXPERIMENTS', '') %}
    {%- for path in (paths_below(folder, 'experiment_id=*/*/*.parquet') if folder else []) %}
        {%- set parts = path.split('/') %}
        {%- if parts[-2].isdigit() and (not wanted or parts[-3].split('=')[1] in wanted.split(',')) %}
            {%- do files.setdefault(parts[-1].split('.')[0], []).append("'" ~ path | replace("'", "''") ~ "'") %}
        {%- endif %}
    {%- endfor %}
    {%- for table in sources_of('lab').values() %}
        {%- if table.name in files %}
            {%- set rows = 'select * from read_parquet([' ~ files[table.name] | join(', ') ~ '], hive_partitioning = false)' %}
        {%- else %}
            {%- set rows = no_rows(table.columns) %}
        {%- endif %}
        {%- do made.append('create or replace view lab_raw.' ~ table.name ~ ' as ' ~ rows) %}
    {%- endfor %}
    {{- return(made) }}
{% endmacro %}
