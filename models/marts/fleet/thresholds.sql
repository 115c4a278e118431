-- What slow means here, for questions that compute a slowdown of their own. Grain: one row.
select
    cast({{ var('slow_threshold') }} as double) as slow_threshold,
    cast({{ var('mild_threshold') }} as double) as mild_threshold,
    cast({{ var('min_reporting_drives') }} as bigint) as min_reporting_drives
