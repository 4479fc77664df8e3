import { Module, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common'
import { createEngine, createLog, type Engine, type Log, type Store } from 'holdfast'
import { createSqliteStore } from 'holdfast/sqlite'
import { customers, receipts, shop } from './shop.ts'

/** Provides the store, the log and the engine of this process. */
export class Holdfast implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly store: Store
  readonly log: Log<typeof shop>
  readonly engine: Engine

  constructor(store: Store) {
    this.store = store
    this.log = createLog({ store, events: shop })
    this.engine = createEngine({ store, subscriptions: [customers, receipts] })
  }

  /** Runs after all modules are initialised and before the server listens. */
  async onApplicationBootstrap(): Promise<void> {
    await this.engine.start()
  }

  /** Runs after Nest has closed the HTTP server, so no request appends any more. */
  async onApplicationShutdown(): Promise<void> {
    await this.engine.stop({ timeout: '10s' })
    await this.store.close()
  }
}

@Module({
  providers: [
    {
      provide: Holdfast,
      useFactory: async () => new Holdfast(await createSqliteStore({ file: process.env['SHOP_DB'] ?? 'shop.db' })),
    },
  ],
  exports: [Holdfast],
})
export class HoldfastModule {}
