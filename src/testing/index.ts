export { type ContractOptions, storeContract } from './contracts/store.ts'
export { createScriptedSource, type ScriptedEvent, type ScriptedSource } from './source.ts'
export { createTemporaryStore } from './temporary-store.ts'
export { createRandom, createVirtualRuntime, type VirtualRuntime } from './virtual.ts'
