import { Migration } from '#database';

export class CountStoredCode1795910400003 extends Migration {
  readonly sql = `
    -- How much the components of an account take. Code that several accounts submit counts for the first one.
    CREATE TABLE stored_code (
      owner_id text COLLATE "C" PRIMARY KEY,
      bytes    bigint NOT NULL
    );
    INSERT INTO stored_code (owner_id, bytes)
    SELECT c.owner_id, sum(1024 + CASE WHEN c.id = first.id
      THEN octet_length(k.code) + octet_length(k.description::text) + coalesce(octet_length(k.bundle), 0) ELSE 0 END)
    FROM component c
    JOIN code k ON k.hash = c.code_hash
    JOIN (SELECT code_hash, min(id) AS id FROM component GROUP BY code_hash) first ON first.code_hash = c.code_hash
    WHERE c.owner_id IS NOT NULL
    GROUP BY c.owner_id;`;
}
