{#- Where Spark keeps a table's files: in a folder of its name below DRIVETAIL_STORE, else below that of its schema in spark.sql.warehouse.dir.
    Spark would take another relative path for one below the schema's folder. -#}
{% macro spark_location(name) %}
    {%- set store = env_var('DRIVETAIL_STORE', '') %}
    {%- if store and not store.startswith('/') and '://' not in store %}
        {%- do exceptions.raise_compiler_error('DRIVETAIL_STORE is ' ~ store ~ ': for Spark give an absolute path') %}
    {%- endif %}
    {{- return("location '" ~ (store ~ '/' if store else '') | replace('\\', '\\\\') | replace("'", "\\'") ~ name ~ "'") }}
{% endmacro %}

{#- In place of dbt-spark's own: its tables are the catalog's to remove, and a catalog that ends with its session removes none. -#}
{% macro spark__location_clause() %}{{ return(spark_location(this.identifier)) }}{% endmacro %}

{#- In place of dbt-spark's own, which puts values between quotes: an apostrophe would end one, and no number is the text None. As one text of JSON:
    Spark would plan every value of a list for itself. -#}
{% macro spark__load_csv_rows(model, agate_table) %}
    {%- set types = model['config'].get('column_types', {}) %}
    {%- set rows = [] %}
    {%- for row in agate_table.rows %}
        {%- set values = {} %}
        {%- for name in agate_table.column_names if row[name] is not none %}{% do values.update({name: row[name] | string}) %}{% endfor %}
        {%- do rows.append(values) %}
    {%- endfor %}
    {%- set texts, columns = [], [] %}
    {%- for name in agate_table.column_names %}
        {%- do texts.append(name ~ ': string') %}
        {%- do columns.append('cast(' ~ name ~ ' as ' ~ types[name] ~ ') as ' ~ name) %}
    {%- endfor %}
    {%- set json = tojson(rows) | replace('\\', '\\\\') | replace("'", "\\'") %}
    {%- set sql = 'insert overwrite ' ~ this ~ ' select ' ~ columns | join(', ') ~ " from (select inline(from_json('" ~ json ~ "', 'array<struct<" ~ texts | join(', ') ~ ">>')))" %}
    {%- do adapter.add_query(sql, abridge_sql_log=True) %}
    {{- return(sql) }}
{% endmacro %}

{#- SQL that makes the tables of a folder of Parquet files, one for each file, in place of those of the models: see engine/spark.py. -#}
{% macro spark_tables_of(folder) %}
    {%- set made = [] %}
    {%- for path in paths_below(folder, '*.parquet') %}
        {%- set table = 'intermediate.' ~ path.split('/')[-1].split('.')[0] %}
        {%- do made.append('drop table if exists ' ~ table) %}
        {%- do made.append('create table ' ~ table ~ " using parquet options (path '" ~ spark_glob(path) ~ "')") %}
    {%- endfor %}
    {{- return(made) }}
{% endmacro %}
