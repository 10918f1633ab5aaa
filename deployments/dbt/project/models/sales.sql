{{ config(materialized="table") }}
select state, sum(amount) as amount from read_parquet('{{ env_var("SHOP_HOME") }}/orders/*.parquet') group by state
