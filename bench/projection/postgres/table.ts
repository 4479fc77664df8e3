import type { Client } from 'pg'

/** The table as the engine makes it for this projection, and the smallest checkpoint there can be. */
export async function createTable(client: Client): Promise<void> {
  await client.query(`
    CREATE TABLE holdfast.balances (
      key text COLLATE "C" PRIMARY KEY, version bigint NOT NULL, position bigint NOT NULL, data json NOT NULL
    ) WITH (fillfactor = 90);
    CREATE TABLE bench_checkpoint (name text PRIMARY KEY, position bigint NOT NULL);
    INSERT INTO bench_checkpoint VALUES ('balances', 0);`)
}
