-- The headlines under other rules, so that what depends on a rule can be seen: hits of total by RAID group.
-- Grain: variant, id, kind, cluster_id.
with drive_groups as (
    select
        drives.kind,
        days.raid_group_id,
        sum(days.slowdown_hours) as slowdown_hours,
        sum(days.mean_slow_hours) as mean_slow_hours,
        sum(days.read_hours) as read_hours,
        sum(days.read_slow_hours) as read_slow_hours,
        sum(days.write_hours) as write_hours,
        sum(days.write_slow_hours) as write_slow_hours,
        sum(days.read_multiple_hours) as read_multiple_hours,
        sum(days.read_tick_hours) as read_tick_hours,
        sum(days.write_multiple_hours) as write_multiple_hours,
        sum(days.write_tick_hours) as write_tick_hours,
        sum(days.rate_hours) as rate_hours,
        sum(days.rate_imbalanced_hours) as rate_imbalanced_hours,
        sum(days.size_hours) as size_hours,
        sum(days.size_imbalanced_hours) as size_imbalanced_hours
{%- for floor in var('io_count_floors') %},
        sum(days.io_{{ floor }}_hours) as io_{{ floor }}_hours,
        sum(days.io_{{ floor }}_slow_hours) as io_{{ floor }}_slow_hours
{%- endfor %}
{%- for edge in var('variant_thresholds') %},
        sum(days.slowdown_hours_{{ edge_name(edge) }}) as slowdown_hours_{{ edge_name(edge) }}
{%- endfor %}
    from {{ ref('int_drive_days') }} as days
    inner join {{ ref('int_drives') }} as drives on days.drive_id = drives.drive_id
    group by drives.kind, days.raid_group_id
),

mixed as (
    select days.raid_group_id
    from {{ ref('int_drive_days') }} as days
    inner join {{ ref('int_drives') }} as drives on days.drive_id = drives.drive_id
    where days.slowdown_hours > 0
    group by days.raid_group_id
    having count(distinct drives.model) > 1
),

raid_days as (
    select
        days.*,
        kinds.kind,
        mixed.raid_group_id is not null as is_mixed,
        case
            when days.data_drive_count <= 4 then 'width 3-4'
            when days.data_drive_count <= 6 then 'width 5-6'
            when days.data_drive_count <= 8 then 'width 7-8'
            else 'width 9+'
        end as width_class
    from {{ ref('int_raid_group_days') }} as days
    inner join {{ ref('int_raid_groups__kinds') }} as kinds on days.raid_group_id = kinds.raid_group_id
    left join mixed on days.raid_group_id = mixed.raid_group_id
),

restricted as (
    select 'complete groups' as variant, * from raid_days where is_complete
    union all
    select 'mixed models' as variant, * from raid_days where is_mixed
    union all
    select width_class as variant, * from raid_days
),

-- RAID-hours by their tails: of some groups only, or of slowdowns made another way
tails as (
    select
        variant,
        kind,
        raid_group_id,
        sum(raid_hours) as raid_hours
{%- for rank in (1, 2, 3) %}
{%- for edge in (var('mild_threshold'), var('slow_threshold')) %},
        sum(tail_{{ rank }}_{{ edge_name(edge) }}) as tail_{{ rank }}_{{ edge_name(edge) }}
{%- endfor %}
{%- endfor %}
    from restricted
    group by variant, kind, raid_group_id
{%- for variant, made, raid_hours in (
    ('read only', 'read', 'read_raid_hours'),
    ('write only', 'write', 'write_raid_hours'),
    ('mean instead of median', 'mean', 'raid_hours'),
    ('minimum I/O 10', 'io_10', 'io_10_raid_hours'),
    ('minimum I/O 100', 'io_100', 'io_100_raid_hours')
) %}
    union all
    select
        '{{ variant }}' as variant,
        kind,
        raid_group_id,
        sum({{ raid_hours }}) as raid_hours
{%- for rank in (1, 2, 3) %}
{%- for edge in (var('mild_threshold'), var('slow_threshold')) %},
        sum({{ made }}_tail_{{ rank }}_{{ edge_name(edge) }}) as tail_{{ rank }}_{{ edge_name(edge) }}
{%- endfor %}
{%- endfor %}
    from raid_days
    group by kind, raid_group_id
{%- endfor %}
),

intervals as (
    select
        kind,
        drive_id,
        raid_group_id,
        {{ hour_index('started_at') }} - {{ hour_index('lag(ended_at) over (partition by drive_id order by started_at)') }} as hours_since_end,
        {{ hour_index('started_at') }} - {{ hour_index('lag(started_at) over (partition by drive_id order by started_at)') }} as hours_since_start,
        lag(raid_group_id) over (partition by drive_id order by started_at) as previous_raid_group_id
    from {{ ref('int_slowdown_intervals') }}
    where threshold = {{ var('slow_threshold') }}
),

ids as (
    select
        'disk' as kind, 'F01-01' as slow, 'F02-01' as tail_1, 'F03-02' as tail_2, 'F03-03' as tail_3,
        'F02-05' as mild_tail_1, 'F4A-T2-1.5' as mild_tail_2, 'F4A-T3-1.5' as mild_tail_3,
        'F04-01' as long_intervals, 'F04-03' as eight_hours, 'F05-01' as arrivals, 'F08-02' as rate, 'F08-06' as size,
        'VST-02' as multiple, 'VST-03' as ticks
    union all
    select
        'ssd' as kind, 'F01-02' as slow, 'F02-02' as tail_1, 'F03-05' as tail_2, 'F03-06' as tail_3,
        'F02-06' as mild_tail_1, 'F4B-T2-1.5' as mild_tail_2, 'F4B-T3-1.5' as mild_tail_3,
        'F04-02' as long_intervals, 'F04-04' as eight_hours, 'F05-02' as arrivals, 'F08-02' as rate, 'F08-07' as size,
        'VST-02' as multiple, 'VST-03' as ticks
),

counted as (
{%- for edge in var('variant_thresholds') %}
    select 'threshold {{ '%g' | format(edge | float) }}' as variant, 'slow' as question, kind, raid_group_id as cluster_id,
        slowdown_hours_{{ edge_name(edge) }} as hits, slowdown_hours as total
    from drive_groups
    union all
    select 'threshold {{ '%g' | format(edge | float) }}' as variant, 'tail_1' as question, kind, raid_group_id as cluster_id,
        sum(tail_1_{{ edge_name(edge) }}) as hits, sum(raid_hours) as total
    from raid_days
    group by kind, raid_group_id
    union all
{%- endfor %}
{%- for variant, hits, total in (
    ('read only', 'read_slow_hours', 'read_hours'),
    ('write only', 'write_slow_hours', 'write_hours'),
    ('mean instead of median', 'mean_slow_hours', 'slowdown_hours'),
    ('minimum I/O 10', 'io_10_slow_hours', 'io_10_hours'),
    ('minimum I/O 100', 'io_100_slow_hours', 'io_100_hours')
) %}
    select '{{ variant }}' as variant, 'slow' as question, kind, raid_group_id as cluster_id, {{ hits }} as hits, {{ total }} as total
    from drive_groups
    union all
{%- endfor %}
{%- for side in ('read', 'write') %}
    select '{{ side }} only' as variant, 'multiple' as question, kind, raid_group_id as cluster_id,
        {{ side }}_multiple_hours as hits, {{ side }}_hours as total
    from drive_groups
    where kind = 'ssd'
    union all
    select '{{ side }} only' as variant, 'ticks' as question, kind, raid_group_id as cluster_id,
        {{ side }}_tick_hours as hits, {{ side }}_multiple_hours as total
    from drive_groups
    where kind = 'ssd'
    union all
{%- endfor %}
{%- for ratio in ('rate', 'size') %}
    select 'unconditional' as variant, '{{ ratio }}' as question, kind, raid_group_id as cluster_id,
        {{ ratio }}_imbalanced_hours as hits, {{ ratio }}_hours as total
    from drive_groups
    union all
{%- endfor %}
    select variant, 'slow' as question, kind, raid_group_id as cluster_id, sum(slow_drive_hours) as hits, sum(drive_hours) as total
    from restricted
    group by variant, kind, raid_group_id
    union all
{%- for rank in (1, 2, 3) %}
    select variant, 'tail_{{ rank }}' as question, kind, raid_group_id as cluster_id,
        tail_{{ rank }}_{{ edge_name(var('slow_threshold')) }} as hits, raid_hours as total
    from tails
    union all
    -- of the second and third the paper prints the share below
    select variant, 'mild_tail_{{ rank }}' as question, kind, raid_group_id as cluster_id,
        {% if rank > 1 %}raid_hours - {% endif %}tail_{{ rank }}_{{ edge_name(var('mild_threshold')) }} as hits, raid_hours as total
    from tails
    union all
{%- endfor %}
    select 'calendar day' as variant, 'arrivals' as question, kind, raid_group_id as cluster_id,
        count(case when cast(previous_hour_utc as date) = cast(hour_utc as date) then 1 end) as hits, count(*) as total
    from {{ ref('int_slowdown_arrivals') }}
    group by kind, raid_group_id
    union all
    select 'interval end to start' as variant, 'arrivals' as question, kind, raid_group_id as cluster_id,
        count(case when hours_since_end <= 24 then 1 end) as hits, count(*) as total
    from intervals
    where previous_raid_group_id = raid_group_id
    group by kind, raid_group_id
    union all
    select 'interval start to start' as variant, 'arrivals' as question, kind, raid_group_id as cluster_id,
        count(case when hours_since_start <= 24 then 1 end) as hits, count(*) as total
    from intervals
    where previous_raid_group_id = raid_group_id
    group by kind, raid_group_id
    union all
    select 'intervals at 1.5x' as variant, 'long_intervals' as question, kind, raid_group_id as cluster_id,
        count(case when interval_hours > 1 then 1 end) as hits, count(*) as total
    from {{ ref('int_slowdown_intervals') }}
    where threshold = {{ var('mild_threshold') }}
    group by kind, raid_group_id
    union all
    select 'intervals at 1.5x' as variant, 'eight_hours' as question, kind, raid_group_id as cluster_id,
        count(case when interval_hours >= 8 then 1 end) as hits, count(*) as total
    from {{ ref('int_slowdown_intervals') }}
    where threshold = {{ var('mild_threshold') }}
    group by kind, raid_group_id
    union all
    select 'whole intervals only' as variant, 'long_intervals' as question, kind, raid_group_id as cluster_id,
        count(case when interval_hours > 1 then 1 end) as hits, count(*) as total
    from {{ ref('int_slowdown_intervals') }}
    where threshold = {{ var('slow_threshold') }} and not is_left_censored and not is_right_censored
    group by kind, raid_group_id
)

select
    counted.variant,
    case counted.question
{%- for question in ('slow', 'tail_1', 'tail_2', 'tail_3', 'mild_tail_1', 'mild_tail_2', 'mild_tail_3', 'long_intervals', 'eight_hours', 'arrivals', 'rate', 'size', 'multiple', 'ticks') %}
        when '{{ question }}' then ids.{{ question }}
{%- endfor %}
    end as id,
    counted.kind,
    counted.cluster_id,
    cast(counted.hits as bigint) as hits,
    cast(counted.total as bigint) as total
from counted
inner join ids on counted.kind = ids.kind
