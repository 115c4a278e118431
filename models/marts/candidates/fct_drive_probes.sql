{#- where more probes than these are needed, the drive is too near to the limit to be told -#}
{% set most_runs = 9 %}
-- Each probe of a suspect drive: is it slow by itself? Grain: drive_id, probed_at.
with ranked_probes as (
    select
        *,
        row_number() over (
            partition by suspect_id, probed_at
            order by
                case verdict when 'slow' then 1 when 'cannot_say' then 2 else 3 end asc,
                ratio_low is null asc,
                ratio desc nulls last,
                pattern asc,
                measure asc
        ) as row_rank
    from {{ ref('int_drive_probes__compared') }}
),

probes as (
    select
        suspect_id, probed_at,
        count(distinct case when not is_suspect then drive_id end) as peer_count,
        coalesce(sum(case when is_suspect then failed_count end), 0) as failed_count,
        {%- for side, condition in [('', 'is_suspect'), ('peer_', 'not is_suspect')] %}
        sum(case when {{ condition }} then other_ios end)
        / nullif(sum(case when {{ condition }} and other_ios is not null then seconds end), 0) as {{ side }}other_iops,
        {%- endfor %}
        min(read_by) as read_by
    from {{ ref('int_drive_probes') }}
    group by suspect_id, probed_at
),

worded_probes as (
    select
        probes.*,
        coalesce(ranked_probes.verdict, 'cannot_say') as verdict,
        ranked_probes.pattern, ranked_probes.measure, ranked_probes.run_count, ranked_probes.read_count, ranked_probes.latency_us, ranked_probes.peer_latency_us, ranked_probes.ratio,
        ranked_probes.ratio_low, ranked_probes.ratio_high, ranked_probes.more_runs, ranked_probes.slow_from,
        case when ranked_probes.measure = 'mean' then 'the mean' else ranked_probes.measure end || ' of ' || ranked_probes.pattern || ' reads ' || {{ times_text('ranked_probes.ratio') }}
        || 'x its peers''' as found,
        ' (' || {{ times_text('ranked_probes.ratio_low') }} || ' to ' || {{ times_text('ranked_probes.ratio_high') }} || ')' as span
    from probes
    left join ranked_probes on probes.suspect_id = ranked_probes.suspect_id and probes.probed_at = ranked_probes.probed_at and ranked_probes.row_rank = 1
)

select
    suspect_id as drive_id, probed_at, verdict,
    case
        when verdict = 'slow' then 'slow by itself: ' || found || span
        when verdict = 'not_slow' and ratio_low > 1
            then 'slower by itself, but less than ' || {{ times_text('slow_from') }} || 'x: ' || found || span
        when verdict = 'not_slow' then 'not by itself: ' || found || span || '; look at controller, cable or load'
        when found is null then 'cannot say: no read of it or of its peers was answered'
        when span is null then 'cannot say: too few reads were answered (' || found || ')'
        when more_runs <= {{ most_runs }} then 'cannot say: ' || {{ counted_noun('more_runs', 'more run') }} || ' (' || found || ',' || replace(span, '(', '')
        else 'cannot say: ' || found || span || ', too near to ' || {{ times_text('slow_from') }} || 'x'
    end
    || case when failed_count > 0 then '; ' || {{ counted_noun('cast(failed_count as bigint)', 'read') }} || ' of it failed' else '' end
    || case
        when other_iops is not null and peer_other_iops is not null
            then '; others did ' || cast(cast(round(other_iops) as bigint) as string) || ' I/Os a second on it, ' || cast(cast(round(peer_other_iops) as bigint) as string)
                || ' on each of its peers'
        else ''
    end as evidence,
    pattern, measure, ratio, ratio_low, ratio_high, latency_us, peer_latency_us, read_count, run_count,
    case when more_runs <= {{ most_runs }} then more_runs end as more_runs,
    peer_count,
    cast(failed_count as bigint) as failed_count,
    other_iops, peer_other_iops, read_by,
    probed_at = max(probed_at) over (partition by suspect_id) as is_newest
from worded_probes
