CREATE ROLE prefect LOGIN PASSWORD 'change-me';
CREATE DATABASE prefect OWNER prefect;
CREATE ROLE assetflow LOGIN PASSWORD 'change-me';
CREATE DATABASE assetflow OWNER assetflow;
