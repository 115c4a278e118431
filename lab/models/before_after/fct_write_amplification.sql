-- Bytes that a drive wrote to its flash for each byte of the host, over a run. Grain: experiment_id, config_id, phase, run_number, device_id.
with increases as (
    select
        *,
        -- less than two looks say nothing, and a counter that fell was reset
        case when looks >= 2 and last_value >= first_value then last_value - first_value end as increase,
        looks >= 2 and last_value < first_value as is_reset
    from {{ ref('step_lab__drive_counters') }}
),

drives as (
    select
        experiment_id, config_id, phase, run_number, device_id,
        {%- for counter in drive_write_counters() %}
        min(increase) filter (where counter = '{{ counter.name }}') as {{ counter.name | lower }},
        {%- endfor %}
        max(looks) as looks,
        coalesce(bool_or(is_reset) filter (where counter in (
            {%- for counter in drive_write_counters() %}'{{ counter.name }}'{{ ', ' if not loop.last }}{% endfor -%}
        )), false) as is_reset
    from increases
    group by experiment_id, config_id, phase, run_number, device_id
),

sided_drives as (
    select
        *,
        case
            {%- for counter in drive_write_counters() if counter.side == 'host' %}
            when {{ counter.name | lower }} is not null then cast({{ counter.name | lower }} as double) * {{ counter.bytes }}
            {%- endfor %}
        end as host_bytes,
        case
            {%- for counter in drive_write_counters() if counter.side == 'host' %}
            when {{ counter.name | lower }} is not null then '{{ counter.name }}'
            {%- endfor %}
        end as host_attribute,
        case
            {%- for counter in drive_write_counters() if counter.side == 'media' %}
            when {{ counter.name | lower }} is not null then cast({{ counter.name | lower }} as double) * {{ counter.bytes }}
            {%- endfor %}
            -- pages of unknown size: those of the host are what the host wrote
            when host_program_page_count > 0 and coalesce(ftl_program_page_count, bckgnd_program_page_cnt) is not null
                then host_bytes
                    * (1 + cast(coalesce(ftl_program_page_count, bckgnd_program_page_cnt) as double) / host_program_page_count)
        end as media_bytes,
        case
            {%- for counter in drive_write_counters() if counter.side == 'media' %}
            when {{ counter.name | lower }} is not null then '{{ counter.name }}'
            {%- endfor %}
            when host_program_page_count > 0 and ftl_program_page_count is not null then 'FTL_Program_Page_Count + Host_Program_Page_Count'
            when host_program_page_count > 0 and bckgnd_program_page_cnt is not null
                then 'Bckgnd_Program_Page_Cnt + Host_Program_Page_Count'
        end as media_attribute
    from drives
)

select
    experiment_id, config_id, phase, run_number, device_id,
    try_cast(round(host_bytes) as bigint) as host_bytes_written,
    try_cast(round(media_bytes) as bigint) as media_bytes_written,
    media_bytes / nullif(host_bytes, 0) as write_amplification,
    nullif(concat_ws(' / ', media_attribute, host_attribute), '') as source_attributes,
    case
        when looks < 2 then 'one snapshot'
        when is_reset and (host_bytes is null or media_bytes is null) then 'counter reset'
        when host_bytes is null then 'no counter of host writes'
        when media_bytes is null then 'no counter of media writes'
        when host_bytes = 0 then 'the host wrote nothing'
    end as reason
from sided_drives
