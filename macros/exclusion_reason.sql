{#- Why a drive has no slowdown in its hour (or sample), null where it has one: the first that holds (metrics 2). -#}
{% macro exclusion_reason() %}
    case
        when slowdown is not null then null
        when not is_covered then 'low_coverage'
        when latency_us is null then 'no_io'
        when latency_count < {{ var('min_reporting_drives') }} then 'too_few_drives'
        else 'zero_median'
    end
{%- endmacro %}
