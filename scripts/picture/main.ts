// Draws the README's picture from a real run: `npm run picture`. A test compares the file with a new run.
import { writeFileSync } from 'node:fs'
import { draw } from './draw.ts'
import { runStory } from './run.ts'

writeFileSync(new URL('../../docs/lane.svg', import.meta.url), draw(await runStory()))
