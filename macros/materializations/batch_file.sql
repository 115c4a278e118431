{#- A model written as one immutable Parquet file per batch, behind a view of the same name. The batch (plan.batch, one row) names the
    folder. The publication later shows the files of all batches together: of a model keyed by RAID-hour the rows that no later batch
    computed again, of one keyed by day (config `stored_by: day`) the rows of the last batch that touched the day
    (docs/decisions/0002-stored-by-raid-hour.md, 0004-counts-by-day.md). -#}
{% materialization batch_file, adapter='duckdb' %}
    {%- set target_relation = this.incorporate(type='view') -%}
    {{ run_hooks(pre_hooks) }}
    {%- set folder = run_query('select batch_folder from plan.batch').columns[0].values()[0] -%}
    {%- set path = folder ~ '/' ~ this.identifier ~ '.parquet' -%}
    {%- if config.get("contract").enforced %}{{ get_assert_columns_equivalent(sql) }}{% endif -%}
    {#- The right side of a join is the one held in memory, as the models are written: DuckDB guesses the rows of Parquet files from a few
        of them, and would hold a batch's 12 million wide rows instead of its RAID-hours. -#}
    {% do run_query("set disabled_optimizers = 'build_side_probe_side'") %}
    {#- Dictionaries are for columns of few values: trying one on every measurement takes a fifth of the time and saves nothing. -#}
    {% call statement('main') -%}
        copy ({{ sql }}) to '{{ path | replace("'", "''") }}' (format parquet, compression zstd, compression_level 1, dictionary_size_limit 1000)
    {%- endcall %}
    {% do run_query("set disabled_optimizers = ''") %}
    {% call statement('view') -%}
        create or replace view {{ target_relation }} as select * from read_parquet('{{ path | replace("'", "''") }}')
    {%- endcall %}
    {{ run_hooks(post_hooks) }}
    {{ adapter.commit() }}
    {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
