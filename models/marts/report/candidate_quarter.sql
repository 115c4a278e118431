{%- set quarter_weeks = 13 %}
-- How the verdicts of the last quarter did: of the Mondays whose 28 days are over, the last 13 weeks. One row; none without such a Monday. Grain: last_monday_utc.
with judged_weeks as (
    select *, max(boundary_utc) over () as last_monday_utc
    from {{ ref('candidate_weeks') }}
    where has_paid is not null
)

select
    min(boundary_utc) as first_monday_utc,
    last_monday_utc,
{%- for verdict in ('replace', 'watch') %}
    {{ counted("verdict = '" ~ verdict ~ "'") }} as {{ verdict }}_count,
    {{ counted("verdict = '" ~ verdict ~ "' and has_paid") }} as {{ verdict }}_paid_count{{ "," if not loop.last }}
{%- endfor %}
from judged_weeks
where boundary_utc > last_monday_utc - interval {{ 7 * quarter_weeks }} day
group by last_monday_utc
