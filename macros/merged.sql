{#- Both directions of a record of a drive over an hour, or a part of one, together: the split directions count where both are given.
    quality/frames.py renders these macros for the gate, so they use no dbt function. -#}
{% macro has_both_directions(measure, record='') -%}
{{ record }}read_{{ measure }} is not null and {{ record }}write_{{ measure }} is not null
{%- endmacro %}

{#- Columns is_split and has_blocks of a record with the contract's columns, which the macros below read. -#}
{% macro given_directions(record) -%}
{{ has_both_directions('ios', record ~ '.') }} as is_split,
        {{ has_both_directions('blocks', record ~ '.') }} as has_blocks
{%- endmacro %}

{#- Latencies that are finite but absurd may merge to infinity, which is no latency. -#}
{% macro merged_latency() -%}
nullif(
        case
            when not is_split then latency_us
            -- the whole average: each direction weighs what it moved, an idle one adds nothing
            when read_ios + write_ios > 0 then (
                coalesce(cast(read_ios as double) * read_latency_us, 0.0) + coalesce(cast(write_ios as double) * write_latency_us, 0.0)
            ) / cast(read_ios + write_ios as double)
        end,
        cast('infinity' as double)
    )
{%- endmacro %}

{% macro merged_io_count() -%}
case when is_split then read_ios + write_ios else io_count end
{%- endmacro %}

{% macro merged_bytes() -%}
case
        when has_blocks then (cast(read_blocks as double) + cast(write_blocks as double)) * cast(block_bytes as double)
        else cast(bytes as double)
    end
{%- endmacro %}

{% macro merged_io_size() -%}
{{ io_size(merged_bytes(), merged_io_count()) }}
{%- endmacro %}

{#- Average size of an I/O (bytes). Null without I/O. -#}
{% macro io_size(bytes='io_bytes', io_count='io_count') -%}
{{ bytes }} / nullif(cast({{ io_count }} as double), 0.0)
{%- endmacro %}
