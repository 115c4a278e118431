-- The numbers of the study as the paper prints them. Grain: id.
select id, kind as place, subject, metric, operator, value, unit from {{ ref('paper_numbers') }}
