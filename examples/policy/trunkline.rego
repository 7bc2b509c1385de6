# What trunkline.yaml says in CEL, as a package for Open Policy Agent: POST /v1/data/trunkline answers all of its rules.
package trunkline

default decision := "allow"

decision := "deny" if secret(input.call)

decision := "confirm" if large

large if {
	input.call.original == "get-sum"
	some key in ["a", "b"]
	input.call.arguments[key] > 1000
}

secret(call) if call.original == "get-env"

reason := "The environment of the server holds secrets." if secret(input.call)

reason := "Sums of numbers above 1000 are confirmed." if large

# Calls with the same arguments need not be asked about again for a minute.
ttl_seconds := 60

# Which tools, prompts and resources a list shows.
visible contains entry.name if {
	some entry in input.list
	not secret(entry)
}
