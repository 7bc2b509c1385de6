/** Sets an entry as the newest of a map with at most `max` entries, of which the oldest is removed. */
export const setBounded = <K, V>(map: Map<K, V>, key: K, value: V, max: number): void => {
  map.delete(key)
  for (const oldest of map.keys()) {
    if (map.size < max) break
    map.delete(oldest)
  }
  map.set(key, value)
}
