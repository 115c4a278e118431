{#- A model that an engine cannot run: its columns, without rows. -#}
{% materialization no_rows, adapter='spark', supported_languages=['python'] %}
    {% call statement('main') -%}
        create or replace view {{ this }} as {{ no_rows(model.columns) | replace('double[]', 'array<double>') }}
    {%- endcall %}
    {{ return({'relations': [this.incorporate(type='view')]}) }}
{% endmaterialization %}
