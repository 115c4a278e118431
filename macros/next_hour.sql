{#- The end of the hour that an instant is in; an instant on the hour is an end itself. -#}
{% macro next_hour(at) -%}
case
            when {{ at }} < timestamp '{{ var("end_of_time") }}' then cast(date_trunc('hour', {{ at }} - interval 1 microsecond) as timestamp) + interval 1 hour
            else {{ at }}
        end
{%- endmacro %}
