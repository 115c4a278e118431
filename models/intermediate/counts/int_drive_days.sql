{{ config(meta={'made': 'by_day'}) }}
-- Day of each drive, in counts that add up: by drive because kind, age, model and cell type may be corrected later, and
-- because hours of one drive are not independent. Grain: day_utc, drive_id, raid_group_id.
-- Hours that arrive of an open day are added to what is stored of the earlier ones.
{%- set sets = [
    'reported', 'in_population', 'slowdown', 'slow', 'mild', 'peer', 'data', 'low_coverage', 'no_io', 'too_few_drives', 'zero_median'
] + reasons_not_judged() + ['undirected'] %}
{%- set numbers = ['judged_hours', 'like_load_hours', 'judged_slow_hours', 'heavy_hours', 'heavy_slow_hours', 'io_count'] %}
{%- for edge in var('slowdown_edges') %}{% do numbers.append('slowdown_hours_' ~ edge_name(edge)) %}{% endfor %}
{%- for edge in (var('chronic_clear_slowdown'), var('chronic_slowdown')) %}{% do numbers.append('judged_hours_' ~ edge_name(edge)) %}{% endfor %}
with computed_days as (
    select
        day_utc, drive_id, raid_group_id,
        min(hour_utc) as first_hour_utc,
        max(hour_utc) as last_hour_utc,
        -- kind of the last hour that declares one. max_by is not used: over texts it costs a quarter of this aggregation
        case max(case when declared_kind is not null then hour_utc end)
{%- for kind in ('disk', 'ssd') %}
            when max(case when declared_kind = '{{ kind }}' then hour_utc end) then '{{ kind }}'
{%- endfor %}
        end as declared_kind,
        coalesce(max(case when is_group_guessed then hour_utc end) = max(hour_utc), false) as is_group_guessed,
        -- also hours outside the population: events ask where they were. Those have no slowdown of any sort and count nowhere else
        {{ counted_hours('true') }} as reported_in,
        {{ counted_hours('is_in_population') }} as in_population_in,
        {{ counted_hours('slowdown is not null') }} as slowdown_in,
        {{ counted_hours('is_slow') }} as slow_in,
        {{ counted_hours('is_mild') }} as mild_in,
        {{ counted_hours('is_peer') }} as peer_in,
        -- what came of the hours without a slowdown
        {{ counted_hours('is_data_drive') }} as data_in,
{%- for reason in ('low_coverage', 'no_io', 'too_few_drives', 'zero_median') %}
        {{ counted_hours("is_in_population and exclusion_reason = '" ~ reason ~ "'") }} as {{ reason }}_in,
{%- endfor %}
{%- for reason in reasons_not_judged() %}
        {{ counted_hours("is_in_population and why_not_judged = '" ~ reason ~ "'") }} as {{ reason }}_in,
{%- endfor %}
        {{ counted_hours('slowdown is not null and coalesce(read_slowdown, write_slowdown) is null') }} as undirected_in,
        max(slow_at) as slow_at,
{%- for edge in var('slowdown_edges') %}
        {{ counted('slowdown >= ' ~ edge) }} as slowdown_hours_{{ edge_name(edge) }},
{%- endfor %}
        {{ counted('judged_slowdown is not null') }} as judged_hours,
        {{ counted('slowdown is not null and rate_imbalance between 0.25 and 4') }} as like_load_hours,
{%- for edge in (var('chronic_clear_slowdown'), var('chronic_slowdown')) %}
        {{ counted('judged_slowdown >= ' ~ edge) }} as judged_hours_{{ edge_name(edge) }},
{%- endfor %}
        {{ counted('is_in_population and judged_slowdown >= slow_at') }} as judged_slow_hours,
        {{ counted('judged_slowdown is not null and rate_imbalance >= ' ~ var('imbalanced')) }} as heavy_hours,
        {{ counted('judged_slowdown >= slow_at and rate_imbalance >= ' ~ var('imbalanced')) }} as heavy_slow_hours,
        cast(sum(case when is_in_population then io_count end) as bigint) as io_count,
        max(slowdown) as max_slowdown,
        max(case when judged_slowdown >= {{ var('chronic_slowdown') }} then latency_us end) as max_late_latency_us
    from {{ ref('int_drive_hours__compared') }}
    where hour_utc >= {{ first_computed_hour() }}
    group by day_utc, drive_id, raid_group_id
),

drive_days as (
    select
        coalesce(computed_days.day_utc, earlier.day_utc) as day_utc,
        coalesce(computed_days.drive_id, earlier.drive_id) as drive_id,
        coalesce(computed_days.raid_group_id, earlier.raid_group_id) as raid_group_id,
        coalesce(earlier.first_hour_utc, computed_days.first_hour_utc) as first_hour_utc,
        coalesce(computed_days.last_hour_utc, earlier.last_hour_utc) as last_hour_utc,
        coalesce(computed_days.declared_kind, earlier.declared_kind) as declared_kind,
        coalesce(computed_days.is_group_guessed, earlier.is_group_guessed) as is_group_guessed,
{%- for name in sets %}
        coalesce(computed_days.{{ name }}_in, 0) | coalesce(earlier.{{ name }}_in, 0) as {{ name }}_in,
{%- endfor %}
{%- for name in numbers %}
        coalesce(computed_days.{{ name }} + earlier.{{ name }}, computed_days.{{ name }}, earlier.{{ name }}) as {{ name }},
{%- endfor %}
{%- for name in ('slow_at', 'max_slowdown', 'max_late_latency_us') %}
        greatest(computed_days.{{ name }}, earlier.{{ name }}) as {{ name }}{{ ',' if not loop.last }}
{%- endfor %}
    from computed_days
    full join {{ source('plan', 'earlier_drive_days') }} as earlier
        on computed_days.day_utc = earlier.day_utc
        and computed_days.drive_id = earlier.drive_id
        and computed_days.raid_group_id = earlier.raid_group_id
),

-- the hour before a day's first is the last of the day before
followed_days as (
    select
        drive_days.*,
{%- for hours in ('slowdown', 'slow', 'mild', 'peer') %}
        {{ hours_after('drive_days.' ~ hours ~ '_in', 'yesterday.' ~ hours ~ '_in') }} as after_{{ hours }}_in{{ "," if not loop.last }}
{%- endfor %}
    from drive_days
    left join drive_days as yesterday
        on drive_days.drive_id = yesterday.drive_id
        and drive_days.raid_group_id = yesterday.raid_group_id
        and drive_days.day_utc = cast(yesterday.day_utc + interval 1 day as date)
)

select
    *,
    {{ hour_count('reported_in') }} as reported_hours,
    {{ hour_count('slowdown_in') }} as slowdown_hours,
    {{ hour_count('slow_in') }} as slow_hours,
    {{ hour_count('mild_in') }} as mild_hours,
    -- an interval starts at every slow hour that does not follow another
    {{ hour_count('slow_in & ~after_slow_in') }} as interval_count,
    {{ hour_count('slowdown_in & after_slowdown_in & ~slow_in & ~after_slow_in') }} as normal_hours,
    {{ hour_count('slow_in & after_slowdown_in & ~after_slow_in') }} as to_slow_hours,
    {{ hour_count('slow_in & after_slow_in') }} as slow_persist_hours,
    {{ hour_count('slowdown_in & ~slow_in & after_slow_in') }} as back_to_stable_hours
from followed_days
