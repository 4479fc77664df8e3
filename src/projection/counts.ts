import { checkCount, defaultMaxDeaths } from '../failure/action.ts'

export function deathsOf(name: string, maxDeaths = defaultMaxDeaths): number {
  checkCount(maxDeaths, `maxDeaths of ${name}`, 2, 1_000)
  return maxDeaths
}

// The version becomes part of a table name, whose length is limited.
const highestVersion = 999_999_999

export function versionOf(name: string, version = 1): number {
  checkCount(version, `version of ${name}`, 1, highestVersion)
  return version
}
