{{ config(materialized='view') }}
-- Relations of this publication, for people and tools that look around. Grain: relation.
select relation, grain, made, as_of_hour_utc, row_count, overlap from {{ ref('stg_raw__relations') }}
