{%- set lab_onset_reads = 20 %}{#- before and after an hour in which a file may become slow for good -#}
{%- set lab_onset_hours = 24 %}{#- of data after it do as well -#}
{%- set lab_set_in_ratio = 1.05 %}{#- a slowdown has set in at so much of the median after it -#}
-- The hour from which a file is read slower for good. Grain: experiment_id, config_id, file_name.
with reads as (
    select
        experiment_id, config_id, file_name,
        (started_s + ended_s) / 2 as midpoint_s,
        cast(floor((started_s + ended_s) / 7200) as bigint) as hour,
        throughput_bytes_per_s as throughput
    from {{ ref('fct_file_reads') }}
    where throughput_bytes_per_s is not null
),

sides as (
    select
        experiment_id, config_id, file_name, hour, throughput,
        count(*) over earlier as reads_before,
        count(*) over later as reads_after,
        median(throughput) over earlier as median_before,
        median(throughput) over later as median_after,
        quantile_disc(throughput, 0.25) over earlier as q1_before,
        quantile_disc(throughput, 0.75) over earlier as q3_before,
        max(midpoint_s) over (partition by experiment_id, config_id, file_name) as last_midpoint_s
    from reads
    window
        earlier as (partition by experiment_id, config_id, file_name order by hour range between unbounded preceding and 1 preceding),
        later as (partition by experiment_id, config_id, file_name order by hour range between current row and unbounded following)
),

hours as (
    select
        experiment_id, config_id, file_name, hour,
        median(throughput) as median_throughput,
        count(*) as reads,
        min(reads_before) as reads_before,
        min(reads_after) as reads_after,
        min(median_before) as median_before,
        min(median_after) as median_after,
        min(q1_before) as q1_before,
        min(q3_before) as q3_before,
        min(last_midpoint_s) as last_midpoint_s
    from sides
    group by experiment_id, config_id, file_name, hour
),

examined_hours as (
    select
        *,
        reads_before >= {{ lab_onset_reads }}
        and (reads_after >= {{ lab_onset_reads }} or last_midpoint_s - hour * 3600 >= {{ lab_onset_hours }} * 3600)
            as is_tested,
        median_throughput < q1_before - 1.5 * (q3_before - q1_before)
        and max(median_throughput) over (
            partition by experiment_id, config_id, file_name order by hour range between current row and unbounded following
        ) <= (median_before + median_after) / 2 as is_slow_from_here,
        is_tested and is_slow_from_here as is_onset
    from hours
),

onsets as (
    select
        experiment_id, config_id, file_name,
        cast(sum(reads) as bigint) as reads,
        bool_or(is_tested) as is_tested,
        min(hour) filter (where is_onset) as onset_hour,
        arg_min(median_before, hour) filter (where is_onset) as median_before,
        arg_min(median_after, hour) filter (where is_onset) as median_after
    from examined_hours
    group by experiment_id, config_id, file_name
),

settled_files as (
    select hours.experiment_id, hours.config_id, hours.file_name, min(hours.hour) as hour
    from hours
    inner join onsets
        on hours.experiment_id = onsets.experiment_id
        and hours.config_id = onsets.config_id
        and hours.file_name = onsets.file_name
        and hours.hour >= onsets.onset_hour
    where hours.median_throughput <= {{ lab_set_in_ratio }} * onsets.median_after
    group by hours.experiment_id, hours.config_id, hours.file_name
),

-- throughput on both sides of the onset, sorted: of reads, and of hours, of which an interval is one, as reads of one hour are alike
{%- for unit, value in (('read', 'throughput'), ('hour', 'median_throughput')) %}
{{ unit }}_spreads as (
    select
        {{ unit }}s.experiment_id,
        {{ unit }}s.config_id,
        {{ unit }}s.file_name,
        list_sort(list({{ unit }}s.{{ value }}) filter (where {{ unit }}s.hour < onsets.onset_hour)) as {{ unit }}s_before,
        list_sort(list({{ unit }}s.{{ value }}) filter (where {{ unit }}s.hour >= onsets.onset_hour)) as {{ unit }}s_after
    from {{ unit }}s
    inner join onsets
        on {{ unit }}s.experiment_id = onsets.experiment_id
        and {{ unit }}s.config_id = onsets.config_id
        and {{ unit }}s.file_name = onsets.file_name
    where onsets.onset_hour is not null
    group by {{ unit }}s.experiment_id, {{ unit }}s.config_id, {{ unit }}s.file_name
),
{%- endfor %}

intervals as (
    select
        read_spreads.*,
        {{ low_drop_of_medians('hour_spreads.hours_before', 'hour_spreads.hours_after') }} as low_drop_ratio,
        {{ high_drop_of_medians('hour_spreads.hours_before', 'hour_spreads.hours_after') }} as high_drop_ratio
    from read_spreads
    inner join hour_spreads using (experiment_id, config_id, file_name)
)

select
    onsets.experiment_id, onsets.config_id, onsets.file_name, onsets.reads, onsets.is_tested, onsets.onset_hour,
    onsets.median_before as median_before_bytes_per_s,
    onsets.median_after as median_after_bytes_per_s,
    {%- for side in ('before', 'after') %}
    len(intervals.reads_{{ side }}) as reads_{{ side }},
    list_aggregate(intervals.reads_{{ side }}, 'quantile_disc', 0.25) as q1_{{ side }}_bytes_per_s,
    list_aggregate(intervals.reads_{{ side }}, 'quantile_disc', 0.75) as q3_{{ side }}_bytes_per_s,
    {%- endfor %}
    (onsets.median_before - onsets.median_after) / onsets.median_before as drop_ratio,
    intervals.low_drop_ratio, intervals.high_drop_ratio,
    case
        when onsets.onset_hour is not null
            then case when intervals.low_drop_ratio > 0 then 'slower' else 'inconclusive' end
    end as verdict,
    settled_files.hour - onsets.onset_hour + 1 as set_in_hours
from onsets
left join settled_files using (experiment_id, config_id, file_name)
left join intervals using (experiment_id, config_id, file_name)
