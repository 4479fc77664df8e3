-- The settings that Holdfast sends when it connects. PgBouncer does not pass them on.
ALTER ROLE shop_engine IN DATABASE shop SET statement_timeout = '30s';
ALTER ROLE shop_engine IN DATABASE shop SET lock_timeout = '5s';
ALTER ROLE shop_engine IN DATABASE shop SET idle_in_transaction_session_timeout = '10s';
ALTER ROLE shop_engine IN DATABASE shop SET client_connection_check_interval = '1s';
ALTER ROLE shop_engine IN DATABASE shop SET default_transaction_isolation = 'read committed';
ALTER ROLE shop_engine IN DATABASE shop SET timezone = 'UTC';
ALTER ROLE shop_engine IN DATABASE shop SET datestyle = 'ISO';
ALTER ROLE shop_engine IN DATABASE shop SET bytea_output = 'hex';
ALTER ROLE shop_engine IN DATABASE shop SET extra_float_digits = 1;
ALTER ROLE shop_engine IN DATABASE shop SET client_min_messages = 'warning';
