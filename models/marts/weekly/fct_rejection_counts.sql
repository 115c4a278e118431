-- Why records were turned away, over the whole warehouse. Grain: source, reason, column_name.
select
    source,
    reason,
    "column" as column_name,
    count(*) as row_count,
    count(distinct file) as file_count
from {{ ref('rejected_records') }}
group by source, reason, "column"
