{{ config(meta={'made': 'each_build'}) }}
-- Why records were turned away, over the whole warehouse. Grain: source, reason, column_name.
select
    source, reason,
    {{ quoted('column') }} as column_name,
    count(*) as row_count,
    count(distinct file) as file_count
from {{ ref('rejected_records') }}
group by source, reason, {{ quoted('column') }}
