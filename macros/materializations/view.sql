{#- In place of dbt-spark's own: on Spark a view is a table. Spark puts the text of a view into every query that reads it, and the text of those it
    reads: of ten in a row it finds no plan in an hour. `views_on_spark` stay views. -#}
{% materialization view, adapter='spark' %}
    {{ return(create_or_replace_view() if model.name in var('views_on_spark') else spark_table()) }}
{% endmaterialization %}

{#- Makes a table of the model, in place of an earlier one. Those in `by_raid_group_on_spark` lie by RAID group: what is joined or added up by it
    is then where it is needed, and the day is shuffled once. -#}
{% macro spark_table() %}
    {{ run_hooks(pre_hooks) }}
    {% do run_query('drop table if exists ' ~ this) %}
    {%- set rows = '(' ~ sql ~ ')' -%}
    {%- set placed = 'select /*+ repartition(' ~ spark_partitions() ~ ', raid_group_id) */ * from ' ~ rows if is_by_raid_group() else sql -%}
    {% call statement('main') -%}{{ create_table_as(false, this, placed) }}{%- endcall %}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [this.incorporate(type='table')]}) }}
{% endmacro %}

{% macro is_by_raid_group() %}{{ return(model.name in var('by_raid_group_on_spark')) }}{% endmacro %}

{#- In place of dbt-spark's own: how many parts is known when the model runs, not when it is read. -#}
{% macro spark__clustered_cols(label, required) %}
    {{- 'clustered by (raid_group_id) into ' ~ spark_partitions() ~ ' buckets' if is_by_raid_group() }}
{% endmacro %}

{% macro spark_partitions() %}{{ return(env_var('DRIVETAIL_SPARK_PARTITIONS', '8')) }}{% endmacro %}
