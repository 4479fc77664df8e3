import type { Door, StoreKind } from '../door.ts'
import { appendDoor } from './append.ts'
import { namesDoor, tablesDoor } from './names.ts'
import { brokenSourceDoor, sourceDoor } from './source.ts'
import { thrownDoor } from './thrown.ts'

/** All of them; those on a server only where there is one. */
export function doorsOn(stores: readonly StoreKind[]): readonly Door[] {
  const onStores = [appendDoor, sourceDoor, brokenSourceDoor, tablesDoor]
  return [thrownDoor, namesDoor, ...stores.flatMap((kind) => onStores.map((door) => door(kind)))]
}
