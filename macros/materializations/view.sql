{#- In place of dbt-spark's own: on Spark a view is a table. Spark puts the text of a view into every query that reads it, and the text of those it
    reads: of ten in a row it finds no plan in an hour. `views_on_spark` stay views. -#}
{% materialization view, adapter='spark' %}
    {{ return(create_or_replace_view() if model.name in var('views_on_spark') else spark_table()) }}
{% endmaterialization %}

{#- Makes a table of the model, in place of an earlier one. -#}
{% macro spark_table() %}
    {{ run_hooks(pre_hooks) }}
    {% do run_query('drop table if exists ' ~ this) %}
    {% call statement('main') -%}{{ create_table_as(false, this, sql) }}{%- endcall %}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [this.incorporate(type='table')]}) }}
{% endmacro %}
