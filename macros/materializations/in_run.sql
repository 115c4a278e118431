{#- A model that several stored models of the same days read: computed once, as a table in memory, for the length of the run. When the run ends,
    a view takes its place (end_run). On Spark it is a table that the next run replaces. -#}
{% materialization in_run, adapter='duckdb' %}
    {#- dbt lists a schema when it is first asked for it, unless something has been made there: then a table of an earlier run is overlooked -#}
    {%- do load_cached_relation(this) -%}
    {%- set target_relation = this.incorporate(type='view') -%}
    {{ run_hooks(pre_hooks) }}
    {% do run_query("attach if not exists ':memory:' as run_tables") %}
    {% call statement('main') -%}
        set disabled_optimizers = 'build_side_probe_side';
        create or replace table run_tables.main.{{ this.identifier }} as ({{ sql }});
        set disabled_optimizers = '';
    {%- endcall %}
    {#- a transaction writes to one database only -#}
    {% do adapter.commit() %}
    {% call statement('view') -%}create or replace view {{ target_relation }} as select * from run_tables.main.{{ this.identifier }}{%- endcall %}
    {{ run_hooks(post_hooks) }}
    {{ adapter.commit() }}
    {{ return({'relations': []}) }}
{% endmaterialization %}

{% materialization in_run, adapter='spark' %}{{ return(spark_table()) }}{% endmaterialization %}

{#- When a run ends (dbt_project.yml, on-run-end): what it held in memory is a view again, and the views show all days again. On Spark nothing
    reads them between two runs, and each run begins by making them. -#}
{% macro end_run(results) %}{% if execute %}{% do adapter.dispatch('let_go_of_run')(results) %}{% endif %}{% endmacro %}
{% macro duckdb__let_go_of_run(results) %}
    {#- a model that failed has left it as it is while a model runs -#}
    {%- do run_query("set disabled_optimizers = ''") %}
    {%- for result in results if result.node.config.materialized == 'in_run' and result.node.compiled_code %}
        {%- do run_query('create or replace view ' ~ result.node.schema ~ '.' ~ result.node.name ~ ' as ' ~ result.node.compiled_code) %}
    {%- endfor %}
    {%- do adapter.commit() %}
    {%- for result in results if result.node.config.materialized == 'in_run' and result.node.compiled_code %}
        {%- do run_query('drop table if exists run_tables.main.' ~ result.node.name) %}
    {%- endfor %}
    {%- if days_to_compute() is not none %}{% do register_days(none) %}{% endif %}
{% endmacro %}
{% macro spark__let_go_of_run(results) %}{% endmacro %}
