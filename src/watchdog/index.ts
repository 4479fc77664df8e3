export { type RunningWatchdog, startWatchdog, type WatchdogOptions } from './watchdog.ts'
