{#- Paths of the files below a folder that fit patterns such as `deliveries/*/*.parquet`, in order. -#}
{% macro paths_below(folder) %}{{ return(adapter.dispatch('paths_below')(folder, varargs)) }}{% endmacro %}
{% macro duckdb__paths_below(folder, patterns) %}
    {%- set globs = [] %}
    {%- for pattern in patterns %}{% do globs.append("select file from glob('" ~ folder | replace("'", "''") ~ '/' ~ pattern ~ "')") %}{% endfor %}
    {{- return(run_query(globs | join(' union all ') ~ ' order by file').columns[0].values() | list) }}
{% endmacro %}
{% macro spark__paths_below(folder, patterns) %}
    {#- The content of the files is not read. Spark takes no glob that finds nothing: all that is there is listed. -#}
    {%- do run_query("create or replace temporary view files_below using binaryFile options (path '" ~ spark_glob(folder) ~ "', recursiveFileLookup 'true')") %}
    {%- set tails = [] %}
    {%- for pattern in patterns %}{% do tails.append(pattern | replace('.', '[.]') | replace('*', '[^/]+')) %}{% endfor %}
    {{- return(run_query("select path from files_below where path rlike '/(" ~ tails | join('|') ~ ")$' order by path").columns[0].values() | list) }}
{% endmacro %}

{#- A path as text of Spark's SQL, in which braces and the like name themselves. -#}
{% macro spark_glob(path) %}{{ return(modules.re.sub("([][{}*?'\\\\])", '\\\\\\\\\\1', path)) }}{% endmacro %}
