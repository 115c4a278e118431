-- Every drive seen in any record. Grain: drive_id.
select * from {{ ref('int_drives') }}
