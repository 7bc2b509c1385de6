declare module 'otlp-protos/build/src/generated/root.js' {
  const root: { readonly opentelemetry: { readonly proto: unknown } }
  export default root
}
