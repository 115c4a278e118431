-- How many drives became slow, stayed slow or ceased to be from one ISO week (UTC) to the next. Grain: week_utc, kind.
select
    week_utc,
    kind,
{%- for state in ('new', 'continuing', 'reopened', 'resolved', 'unseen') %}
    count(case when state = '{{ state }}' then 1 end) as {{ state }}_drive_count{{ "," if not loop.last }}
{%- endfor %}
from {{ ref('fct_weekly_drive_states') }}
group by week_utc, kind
