export { createMemoryBreakerStore } from './breaker-store.ts'
export { type ContractOptions, storeContract } from './contracts/store.ts'
export type { MemoryHandle } from './memory/handle.ts'
export { defineMemoryProjection } from './memory/projection.ts'
export {
  type ConnectOptions,
  createMemoryServer,
  createMemoryStore,
  type MemoryServer,
  type MemoryStore,
} from './memory/store.ts'
export type { TestEvent } from './kit/events.ts'
export type { ExpectedError } from './kit/expected-error.ts'
export { given } from './kit/given.ts'
export type { CommandParts, GivenCommands, WhenDecided, WhenOptions } from './kit/given-commands.ts'
export type { GivenHandler } from './kit/given-handler.ts'
export type { ExpectedHeld, ExpectedRows, GivenProjection } from './kit/given-projection.ts'
export { expectIdempotent, type IdempotentOptions } from './kit/idempotent.ts'
export { expectOrderSafe, type OrderSafeOptions } from './kit/order-safe.ts'
export type { ExpectedOutcome, Outcome, OutcomeName } from './kit/outcomes.ts'
export { expectRebuildEqual } from './kit/rebuild-equal.ts'
export { createTestEngine, type TestEngine, type TestEngineOptions } from './kit/test-engine.ts'
export type { Subject, World } from './kit/world.ts'
export type { Outside } from './simulation/app.ts'
export { allFaults, type Fault } from './simulation/plan.ts'
export { type SimulateOptions, type SimulationReport, simulate } from './simulation/simulate.ts'
export type { SimulatedApp, SimulatedEnd } from './simulation/simulated-app.ts'
export { createScriptedSource, type ScriptedEvent, type ScriptedSource } from './source.ts'
export { createTemporaryStore } from './temporary-store.ts'
export { createRandom, createVirtualRuntime, type VirtualRuntime } from './virtual.ts'
