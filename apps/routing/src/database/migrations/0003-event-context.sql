-- What an event's producer states about it, as JSON: its CloudEvents attributes and trace context. Null: nothing.
ALTER TABLE parked_delivery ADD context text;
