export { createMemoryBreakerStore } from './breaker-store.ts'
export { type ContractOptions, storeContract } from './contracts/store.ts'
export type { MemoryHandle } from './memory/handle.ts'
export {
  type ConnectOptions,
  createMemoryServer,
  createMemoryStore,
  type MemoryServer,
  type MemoryStore,
} from './memory/store.ts'
export { createScriptedSource, type ScriptedEvent, type ScriptedSource } from './source.ts'
export { createTemporaryStore } from './temporary-store.ts'
export { createRandom, createVirtualRuntime, type VirtualRuntime } from './virtual.ts'
