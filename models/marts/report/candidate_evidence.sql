{%- set classes = var('candidate_classes') %}
-- How the number of each candidate comes about, row by row: what is expected after each step is what was before it times its factor.
-- Grain: drive_id, step.
with latest as (
    select expected.*
    from {{ ref('int_drive_weeks__expected') }} as expected
    inner join {{ ref('replacement_candidates') }} as candidates
        on expected.drive_id = candidates.drive_id and expected.boundary_utc = candidates.boundary_utc
)

select
    drive_id,
    cast(0 as bigint) as step,
    'own rate' as evidence,
    {{ to_tenths('own_tail_hours') }} as evidence_class,
    credibility as factor,
    credible_tail_hours as expected_tail_hours
from latest
{%- for class in classes %}
union all
select
    drive_id,
    cast({{ loop.index }} as bigint) as step,
    '{{ class }}' as evidence,
    {{ class }}_class as evidence_class,
    {{ class }}_factor as factor,
    credible_tail_hours
    {%- for before in classes[:loop.index] %} * {{ before }}_factor{% endfor %} as expected_tail_hours
from latest
{%- endfor %}
