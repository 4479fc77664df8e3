import type { Door, StoreKind } from '../door.ts'
import { appendDoor } from './append.ts'
import { cliDoor } from './cli.ts'
import { configDoor, configFileDoor } from './config.ts'
import { copyDoor, importDoor, restoreDoor, reviseDoor, shownDoor } from './letters.ts'
import { namesDoor, tablesDoor } from './names.ts'
import { brokenSourceDoor, sourceDoor } from './source.ts'
import { thrownDoor } from './thrown.ts'

const anywhere = [thrownDoor, namesDoor, configDoor, configFileDoor]
const onStores = [appendDoor, sourceDoor, brokenSourceDoor, tablesDoor, shownDoor, reviseDoor, importDoor, cliDoor]

/** All of them; those on a server only where there is one. */
export function doorsOn(stores: readonly StoreKind[]): readonly Door[] {
  const copies = stores.includes('postgres') ? [copyDoor, restoreDoor] : []
  return [...anywhere, ...stores.flatMap((kind) => onStores.map((door) => door(kind))), ...copies]
}
